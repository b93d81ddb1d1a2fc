"""Where the files of a run lie, and who reads them."""
