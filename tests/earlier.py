"""The shipped models that were made before recipes were recorded. Remove a model here when it is trained again."""

ANOTHER_SHAPE = {"transliterator-indic"}  # its recipe makes another cell and another score now

EARLIER = {
    "captioner",
    "captioner-plain",
    "lm-c",
    "lm-tolstoy",
    "translator-de-en",
    "translator-de-en-plain",
    *ANOTHER_SHAPE,
}
