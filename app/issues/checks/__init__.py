"""What is looked for in an issue before it goes, one kind of mistake a module; each finding is a Fault."""
