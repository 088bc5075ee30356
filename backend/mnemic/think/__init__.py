"""What is made of memories: rules by default, a language model as a plug-in."""
