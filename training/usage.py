"""What `python -m training` and each of its commands say of themselves, with examples."""

PROGRAM = """\
From raw data to an evaluated checkpoint. Begin with the toy, which takes a minute:

  python -m training fit reverse --out runs/reverse
  python -m training evaluate runs/reverse
  echo abcdef | python -m seqdemo transliterate --checkpoint runs/reverse"""
FIT = """\
Train a model: any of the shipped ones, or a variant of one.

  python -m training fit translator-de-en --out runs/de-en
  python -m training fit translator-de-en --out runs/de-en --resume
  python -m training fit reverse --out runs/gru --set cell=gru --set rate=0.004 --epochs 5
  torchrun --nproc-per-node 2 -m training fit translator-de-en --out runs/de-en

The data are downloaded once, or read from --data. Ctrl-C and SIGTERM save and stop at the next step (exit codes 130, 143);
a run that was killed has its last state, at most two minutes old. With --resume it ends with the very weights it would have
had without the pause, on the same machine with as many threads and processes. Under torchrun all of them save and stop
likewise, and the command ends with torchrun's own exit code; on several machines --out is one folder that all of them see.

In the folder are then a checkpoint, metrics.jsonl (the log), report.html (curves, alignments as they grew, worst and best
examples) and state/ (all that --resume needs; delete it when you are done)."""
DATA = """\
Show what a recipe reads: counts, lengths, examples, what was left out and why, and the fingerprint of the splits.

  python -m training data reverse
  python -m training data translator-de-en --data downloads
  python -m training data translator-de-en --problems      every row that could not be used, and why"""
RECIPES_HELP = """\
List every recipe with its task, data and budget in minutes of one core.

  python -m training recipes
  python -m training recipes translator-de-en      all that this one says"""
EXPORT = """\
Write the best weights of a run as a checkpoint, also while the run goes on.

  python -m training export runs/reverse
  python -m training export runs/de-en --out checkpoints/translator-de-en
  python -m training export runs/de-en --out small --precision int8

With int8 the file is half as large: its matrices are rounded to whole multiples of a scale for each row. Compare both exports
by evaluate --split dev, and ship int8 where dev shows no loss. In memory either is float32 (see also `rounding`)."""
EVALUATE = """\
Measure a checkpoint on its test data and write metrics.json beside it: the task's figures with greedy search and several
beams, by source length, and how often search misses the best output. On other splits and data it prints figures only.

  python -m training evaluate checkpoints/translator-de-en
  python -m training evaluate runs/gru --split dev
  torchrun --nproc-per-node 2 -m training evaluate checkpoints/translator-de-en"""
COMPARE = """\
Compare two checkpoints on the same inputs: what one gets right and the other wrong, and the reverse.

  python -m training compare checkpoints/translator-de-en checkpoints/translator-de-en-plain"""
LOOKING = """\
Where attention rests while a model writes. For a transliterator: the shares of signs whose heaviest weight lies on a letter
that spells them (shift 0), on the position before such a letter (-1), or after one (+1), in words of dev whose signs are each
spelt by one or two Latin letters, in order. The shares overlap: between the two letters of a sign, a weight on the first lies
before the second. For a translator: its alignment error against links of IBM model 1, at the same shifts.

  python -m training looking checkpoints/transliterator-hi-attention
  python -m training looking checkpoints/translator-de-en --record      and write it into metrics.json"""
PRECISION = """\
What weights in bfloat16 and int8 change on dev inputs: quality, the share of outputs that differ from those of float32, and
processor time. It needs a processor with instructions for them.

  python -m training rounding checkpoints/translator-de-en
  python -m training rounding checkpoints/translator-de-en --record      and write it into metrics.json"""
TIMING = """\
How long a model takes to decode inputs of dev with beam 5, one at a time and in batches of 64, in turns with another model.

  python -m training timing checkpoints/transliterator-hi-transformer checkpoints/transliterator-hi-attention"""
CARD = """\
Draw the pictures of checkpoints (an alignment, quality by length) and render their model cards (README.md) from config.json
and metrics.json.

  python -m training card runs/reverse
  python -m training card                           all in checkpoints/, and the table of models in the README"""
TABLE = """\
Put the table of models into README.md, between its two markers.

  python -m training table"""
GALLERY = """\
Search dev data for inputs that each show something, and write them to checkpoints/gallery.json.

  python -m training gallery checkpoints/translator-de-en checkpoints/transliterator-hi-attention \\
      checkpoints/transliterator-indic checkpoints/captioner checkpoints/lm-tolstoy --photographs seqdemo/ui/photos
  python -m training gallery checkpoints/captioner --keep --photographs seqdemo/ui/photos      keeps the others"""
SAMPLE = """\
Draw a small sample of dev text for the pages, over which gates and units are looked at: checkpoints/sample.json.

  python -m training sample"""
