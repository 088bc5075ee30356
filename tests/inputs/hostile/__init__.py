"""Every public method, by reflection, with values that nobody should send."""
