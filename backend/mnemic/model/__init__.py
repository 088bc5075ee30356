"""What a memory is: frozen values and pure rules; standard library only."""
