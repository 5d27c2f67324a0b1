"""The projectors, one file each: which mutations each follows and which rows it writes."""
