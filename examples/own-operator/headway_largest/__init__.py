"""The operator `largest`: the k largest tuples of each window and partition."""
