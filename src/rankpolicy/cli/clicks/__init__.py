"""rankpolicy clicks: the verbs about click logs."""
