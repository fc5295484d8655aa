"""The parts of a network and the networks made of them.

cells      Elman, LSTM and its ablations, GRU, MUT1-3; stacks of them (their terms as data: seqdemo.equations)
attention  the five scores, one attend; how a step consults the edits
coders     encoders of texts, one way or both, and of images; decoders: the four orders in which context enters
cnn        EfficientNet-Lite: a picture -> a grid of features
packed     weights packed in float32, bfloat16 or int8; fast tanh and LSTMs
inference  networks for inference, which never change
model      what every network is to those who use it: read, start, step, teach; the recurrent ones, Seq2Seq and LanguageModel
single     one stack of cells that reads the source and writes
"""
