-- layers.lua: what flow.help says of layers: examples; what a layer does says its record. See reference/texts.lua for the form.
return [==[
flow.layers.Layer: The class that layers written in Lua extend: build() makes weights, call() computes.
  local Scale = layers.Layer:extend("Scale")
  function Scale:build() self.gain = self:add_weight { name = "gain", shape = {}, initializer = "ones" } end
  function Scale:call(x) return x * self.gain end
  print(Scale()(flow.ones { 1, 2 }))
flow.layers.Input: A symbolic tensor to build a model from; the shape is that of one sample.
  local input = layers.Input { 4 }
  local model = flow.Model { inputs = input, outputs = layers.Dense(2)(input) }
  print(model:count_params())      --> 10
flow.layers.InputLayer: Shape and dtype of a model's input; the batch is not counted in shape.
  print(flow.Sequential({ layers.InputLayer { input_shape = { 4 } }, layers.Dense(2) }):count_params())      --> 10
flow.layers.Dense:
  print(layers.Dense(3, { activation = "relu" })(flow.ones { 2, 4 }).shape[2])      --> 3
flow.layers.Activation:
  print(layers.Activation("tanh")(flow.ones { 1, 2 }))
flow.layers.Add:
  print(layers.Add()({ flow.ones { 1, 2 }, flow.ones { 1, 2 } }))
flow.layers.Subtract:
  print(layers.Subtract()({ flow.ones { 1, 2 }, flow.ones { 1, 2 } }))
flow.layers.Multiply:
  print(layers.Multiply()({ flow.ones { 1, 2 }, flow.ones { 1, 2 } }))
flow.layers.Average:
  print(layers.Average()({ flow.ones { 1, 2 }, flow.zeros { 1, 2 } }))
flow.layers.Maximum:
  print(layers.Maximum()({ flow.ones { 1, 2 }, flow.zeros { 1, 2 } }))
flow.layers.Minimum:
  print(layers.Minimum()({ flow.ones { 1, 2 }, flow.zeros { 1, 2 } }))
flow.layers.Concatenate:
  print(layers.Concatenate()({ flow.ones { 1, 2 }, flow.zeros { 1, 3 } }).shape[2])      --> 5
flow.layers.Attention:
  local x = flow.ones { 1, 3, 4 }
  print(layers.Attention()({ x, x }).shape[3])      --> 4
flow.layers.AdditiveAttention:
  local x = flow.ones { 1, 3, 4 }
  print(layers.AdditiveAttention()({ x, x }).shape[3])      --> 4
flow.layers.MultiHeadAttention:
  local x = flow.ones { 1, 3, 4 }
  print(layers.MultiHeadAttention { num_heads = 2, key_dim = 4 }(x, x).shape[3])      --> 4
flow.layers.CachedMultiHeadAttention:
  local x, layer = flow.ones { 1, 1, 4 }, layers.CachedMultiHeadAttention { num_heads = 2, key_dim = 4 }
  local y, cache = unpack(layer(x, { cache = flow.zeros { 1, 2, 8, 2, 4 }, cache_update_index = 0, use_causal_mask = true }))
  print(cache.shape[3])      --> 8
flow.layers.GroupQueryAttention:
  local x = flow.ones { 1, 3, 4 }
  print(layers.GroupQueryAttention { head_dim = 4, num_query_heads = 2, num_key_value_heads = 1 }(x, x).shape[3])      --> 4
flow.layers.AlphaDropout:
  print(layers.AlphaDropout(0.5)(flow.ones { 1, 4 }))
flow.layers.Dropout:
  print(layers.Dropout(0.5)(flow.ones { 1, 4 }, { training = true }).shape[2])      --> 4
flow.layers.SpatialDropout1D:
  print(layers.SpatialDropout1D(0.5)(flow.ones { 1, 4, 2 }).shape[2])      --> 4
flow.layers.SpatialDropout2D:
  print(layers.SpatialDropout2D(0.5)(flow.ones { 1, 4, 4, 2 }).shape[2])      --> 4
flow.layers.GaussianDropout:
  print(layers.GaussianDropout(0.5)(flow.ones { 1, 4 }))
flow.layers.GaussianNoise:
  print(layers.GaussianNoise(0.1)(flow.ones { 1, 4 }))
flow.layers.AveragePooling1D:
  print(layers.AveragePooling1D(2)(flow.ones { 1, 4, 3 }).shape[2])      --> 2
flow.layers.AveragePooling2D:
  print(layers.AveragePooling2D(2)(flow.ones { 1, 4, 4, 3 }).shape[2])      --> 2
flow.layers.MaxPooling1D:
  print(layers.MaxPooling1D(2)(flow.ones { 1, 4, 3 }).shape[2])      --> 2
flow.layers.MaxPooling2D:
  print(layers.MaxPooling2D(2)(flow.ones { 1, 4, 4, 3 }).shape[2])      --> 2
flow.layers.GlobalAveragePooling1D:
  print(layers.GlobalAveragePooling1D()(flow.ones { 1, 4, 3 }).shape[2])      --> 3
flow.layers.GlobalAveragePooling2D:
  print(layers.GlobalAveragePooling2D()(flow.ones { 1, 4, 4, 3 }).shape[2])      --> 3
flow.layers.GlobalMaxPooling1D:
  print(layers.GlobalMaxPooling1D()(flow.ones { 1, 4, 3 }).shape[2])      --> 3
flow.layers.GlobalMaxPooling2D:
  print(layers.GlobalMaxPooling2D()(flow.ones { 1, 4, 4, 3 }).shape[2])      --> 3
flow.layers.GroupNormalization:
  print(layers.GroupNormalization(2)(flow.ones { 2, 4 }).shape[2])      --> 4
flow.layers.ActivityRegularization:
  local layer = layers.ActivityRegularization { l1 = 0.5 }
  layer(flow.ones { 2, 4 })
  print(layer.losses[1]:item())      --> 2
flow.layers.LayerScale:
  print(layers.LayerScale(0.5, 4)(flow.ones { 2, 4 })[{ 1, 1 }]:item())      --> 0.5
flow.layers.RMSNormalization:
  print(layers.RMSNormalization()(flow.ones { 2, 4 }).shape[2])      --> 4
flow.layers.Dot:
  print(layers.Dot { axes = 2 }({ flow.ones { 1, 3 }, flow.ones { 1, 3 } }):item())      --> 3
flow.layers.Conv3D:
  print(layers.Conv3D(8, 3, { padding = "same" })(flow.ones { 1, 4, 4, 4, 2 }).shape[5])      --> 8
flow.layers.MaxPooling3D:
  print(layers.MaxPooling3D()(flow.ones { 1, 4, 4, 4, 2 }).shape[2])      --> 2
flow.layers.AveragePooling3D:
  print(layers.AveragePooling3D(2)(flow.ones { 1, 4, 4, 4, 2 }).shape[2])      --> 2
flow.layers.GlobalAveragePooling3D:
  print(layers.GlobalAveragePooling3D()(flow.ones { 1, 4, 4, 4, 2 }).shape[2])      --> 2
flow.layers.GlobalMaxPooling3D:
  print(layers.GlobalMaxPooling3D()(flow.ones { 1, 4, 4, 4, 2 }).shape[2])      --> 2
flow.layers.UpSampling3D:
  print(layers.UpSampling3D(2)(flow.ones { 1, 2, 2, 2, 1 }).shape[2])      --> 4
flow.layers.ZeroPadding3D:
  print(layers.ZeroPadding3D(1)(flow.ones { 1, 2, 2, 2, 1 }).shape[2])      --> 4
flow.layers.Cropping3D:
  print(layers.Cropping3D(1)(flow.ones { 1, 3, 3, 3, 1 }).shape[2])      --> 1
flow.layers.SpatialDropout3D:
  print(layers.SpatialDropout3D(0.5)(flow.ones { 1, 2, 2, 2, 1 }).shape[2])      --> 2
flow.layers.BatchNormalization:
  print(layers.BatchNormalization()(flow.ones { 2, 4 }).shape[2])      --> 4
flow.layers.LayerNormalization:
  print(layers.LayerNormalization()(flow.tensor { { 1, 2, 3 } }))
flow.layers.UnitNormalization:
  print(layers.UnitNormalization()(flow.tensor { { 3, 4 } }))
flow.layers.Normalization:
  local normalization = layers.Normalization()
  normalization:adapt(flow.tensor { { 1 }, { 3 } })
  print(normalization(flow.tensor { { 2 } }):item())      --> 0
flow.layers.CenterCrop:
  print(layers.CenterCrop(2, 2)(flow.ones { 1, 4, 4, 3 }).shape[2])      --> 2
flow.layers.Resizing:
  print(layers.Resizing(2, 3)(flow.ones { 1, 4, 4, 3 }).shape[3])      --> 3
flow.layers.Rescaling:
  print(layers.Rescaling(1 / 255)(flow.full({ 1, 1 }, 255)):item())      --> 1
flow.layers.RandomContrast:
  print(layers.RandomContrast(0.2)(flow.ones { 1, 4, 4, 3 }).shape[2])      --> 4
flow.layers.RandomFlip:
  print(layers.RandomFlip("horizontal")(flow.ones { 1, 4, 4, 3 }).shape[2])      --> 4
flow.layers.RandomRotation:
  print(layers.RandomRotation(0.1)(flow.ones { 1, 4, 4, 3 }).shape[2])      --> 4
flow.layers.RandomZoom:
  print(layers.RandomZoom(0.1)(flow.ones { 1, 4, 4, 3 }).shape[2])      --> 4
flow.layers.Conv1D:
  print(layers.Conv1D(8, 3)(flow.ones { 1, 5, 2 }).shape[2])      --> 3
flow.layers.Conv2D:
  print(layers.Conv2D(8, 3, { padding = "same", activation = "relu" })(flow.ones { 1, 5, 5, 3 }).shape[4])      --> 8
flow.layers.Conv1DTranspose:
  print(layers.Conv1DTranspose(8, 3, { strides = 2 })(flow.ones { 1, 5, 2 }).shape[2])      --> 11
flow.layers.Conv2DTranspose:
  print(layers.Conv2DTranspose(8, 3, { strides = 2, padding = "same" })(flow.ones { 1, 5, 5, 2 }).shape[2])      --> 10
flow.layers.DepthwiseConv1D:
  print(layers.DepthwiseConv1D(3)(flow.ones { 1, 5, 2 }).shape[3])      --> 2
flow.layers.DepthwiseConv2D:
  print(layers.DepthwiseConv2D(3)(flow.ones { 1, 5, 5, 2 }).shape[4])      --> 2
flow.layers.SeparableConv1D:
  print(layers.SeparableConv1D(8, 3)(flow.ones { 1, 5, 2 }).shape[3])      --> 8
flow.layers.SeparableConv2D:
  print(layers.SeparableConv2D(8, 3)(flow.ones { 1, 5, 5, 2 }).shape[4])      --> 8
flow.layers.Cropping1D:
  print(layers.Cropping1D(1)(flow.ones { 1, 5, 2 }).shape[2])      --> 3
flow.layers.Cropping2D:
  print(layers.Cropping2D(1)(flow.ones { 1, 5, 5, 2 }).shape[2])      --> 3
flow.layers.ZeroPadding1D:
  print(layers.ZeroPadding1D(1)(flow.ones { 1, 5, 2 }).shape[2])      --> 7
flow.layers.ZeroPadding2D:
  print(layers.ZeroPadding2D(1)(flow.ones { 1, 5, 5, 2 }).shape[2])      --> 7
flow.layers.UpSampling1D:
  print(layers.UpSampling1D(2)(flow.ones { 1, 5, 2 }).shape[2])      --> 10
flow.layers.UpSampling2D:
  print(layers.UpSampling2D(2)(flow.ones { 1, 5, 5, 2 }).shape[2])      --> 10
flow.layers.ELU:
  print(layers.ELU()(flow.tensor { { -1, 2 } }))
flow.layers.LeakyReLU:
  print(layers.LeakyReLU(0.1)(flow.tensor { { -1, 2 } }))
flow.layers.PReLU:
  print(layers.PReLU()(flow.tensor { { -1, 2 } }))
flow.layers.ReLU:
  print(layers.ReLU { max_value = 1 }(flow.tensor { { -1, 2 } }))
flow.layers.Softmax:
  print(layers.Softmax()(flow.tensor { { 1, 2 } }))
flow.layers.Embedding:
  print(layers.Embedding(10, 4)(flow.tensor({ { 1, 2 } }, { dtype = "int32" })).shape[3])      --> 4
flow.layers.Masking:
  print(layers.Masking()(flow.ones { 1, 3, 2 }).shape[2])      --> 3
flow.layers.GRU:
  print(layers.GRU(8)(flow.ones { 1, 3, 4 }).shape[2])      --> 8
flow.layers.LSTM:
  print(layers.LSTM(8, { return_sequences = true })(flow.ones { 1, 3, 4 }).shape[2])      --> 3
flow.layers.SimpleRNN:
  print(layers.SimpleRNN(8)(flow.ones { 1, 3, 4 }).shape[2])      --> 8
flow.layers.ConvLSTM1D:
  print(layers.ConvLSTM1D(8, 3)(flow.ones { 1, 4, 7, 2 }).shape[2])      --> 5
flow.layers.ConvLSTM2D:
  print(layers.ConvLSTM2D(8, 3, { return_sequences = true })(flow.ones { 1, 4, 7, 6, 2 }).shape[3])      --> 5
flow.layers.ConvLSTM3D:
  print(layers.ConvLSTM3D(8, 3, { padding = "same" })(flow.ones { 1, 2, 5, 4, 3, 2 }).shape[2])      --> 5
flow.layers.Bidirectional: A recurrent layer and one that reads the steps in the other order; merge_mode says what becomes of both.
  local both = layers.Bidirectional(layers.LSTM(8, { return_sequences = true }), { merge_mode = "sum" })
  print(both(flow.ones { 1, 3, 4 }).shape[3])      --> 8
flow.layers.AdaptiveAveragePooling1D: The means of windows that divide the steps into output_size parts.
  print(layers.AdaptiveAveragePooling1D(3)(flow.ones { 1, 7, 2 }).shape[2])      --> 3
flow.layers.AdaptiveAveragePooling2D: The means of windows that divide height and width into output_size parts.
  print(layers.AdaptiveAveragePooling2D(3)(flow.ones { 1, 6, 7, 2 }).shape[2])      --> 3
flow.layers.AdaptiveAveragePooling3D: The means of windows that divide depth, height and width into output_size parts.
  print(layers.AdaptiveAveragePooling3D(3)(flow.ones { 1, 4, 5, 6, 2 }).shape[2])      --> 3
flow.layers.EinsumDense:
  local dense = layers.EinsumDense("abc,cd->abd", { -1, 8 }, { bias_axes = "d" })
  print(dense(flow.ones { 2, 5, 4 }).shape[3])      --> 8
flow.layers.Conv3DTranspose:
  print(layers.Conv3DTranspose(2, 2, { strides = 2 })(flow.ones { 1, 2, 3, 3, 4 }).shape[2])      --> 4
flow.layers.RandomBrightness: In training, a number is added to each picture: a share of the range of its values.
  print(layers.RandomBrightness({ 0.5, 0.5 }, { value_range = { 0, 1 } })(flow.zeros { 1, 1, 1, 3 }))
flow.layers.RandomColorDegeneration: In training, each picture is brought nearer to its shades of grey, by a random share.
  print(layers.RandomColorDegeneration(0.5)(flow.ones { 1, 2, 2, 3 }).shape[4])      --> 3
flow.layers.RandomColorJitter: In training, brightness, contrast, saturation and hue of each picture are changed.
  print(layers.RandomColorJitter { brightness_factor = 0.2, hue_factor = 0.1 }(flow.ones { 1, 2, 2, 3 }).shape[4])      --> 3
flow.layers.RandomGaussianBlur: In training, pictures are blurred, each with a probability.
  print(layers.RandomGaussianBlur { kernel_size = 5, sigma = { 0.2, 0.9 } }(flow.ones { 1, 8, 8, 3 }).shape[2])      --> 8
flow.layers.RandomGrayscale: In training, each picture becomes grey with the probability factor.
  print(layers.RandomGrayscale(1)(flow.ones { 1, 1, 1, 3 }))
flow.layers.RandomHue: In training, the hue of each picture is turned by up to a share factor of half a circle.
  print(layers.RandomHue(0.2)(flow.ones { 1, 2, 2, 3 }).shape[4])      --> 3
flow.layers.RandomInvert: In training, pictures become their negatives, each with a probability.
  print(layers.RandomInvert({ 1, 1 })(flow.zeros { 1, 1, 1, 1 }))
flow.layers.RandomPosterization: In training, pictures keep the first of the eight bits of each value, as many as factor says.
  print(layers.RandomPosterization({ 1, 1 })(flow.full({ 1, 1, 1, 1 }, 200)))
flow.layers.RandomSaturation: In training, each picture becomes paler (a factor below 0.5) or more colourful.
  print(layers.RandomSaturation({ 0.4, 0.6 }, { value_range = { 0, 1 } })(flow.ones { 1, 2, 2, 3 }).shape[4])      --> 3
flow.layers.RandomSharpness: In training, each picture is blurred (a factor below 0.5) or sharpened.
  print(layers.RandomSharpness(0.5)(flow.ones { 1, 3, 3, 3 }).shape[4])      --> 3
flow.layers.Solarization: In training, values of pictures above a random threshold are inverted.
  print(layers.Solarization()(flow.full({ 1, 1, 1, 1 }, 55)))
flow.layers.AutoContrast: Each channel of a picture spread over the whole range of values.
  print(layers.AutoContrast()(flow.tensor { { { { 10 }, { 20 } } } }))
flow.layers.RandomTranslation: In training, each picture is moved by a random share of its height and width.
  print(layers.RandomTranslation(0.2, 0.2)(flow.ones { 1, 8, 8, 3 }).shape[2])      --> 8
flow.layers.RandomShear: In training, rows and columns of each picture are moved against one another.
  print(layers.RandomShear(0.2, 0.1)(flow.ones { 1, 8, 8, 3 }).shape[2])      --> 8
flow.layers.RandomPerspective: In training, pictures are seen at a slant, each with a probability.
  print(layers.RandomPerspective { scale = 0.3 }(flow.ones { 1, 8, 8, 3 }).shape[2])      --> 8
flow.layers.RandomElasticTransform: In training, pictures are bent, each with a probability.
  print(layers.RandomElasticTransform()(flow.ones { 1, 8, 8, 3 }).shape[2])      --> 8
flow.layers.RandomErasing: In training, a random box of each picture is covered, by noise or by fill_value.
  print(layers.RandomErasing { fill_value = 0 }(flow.ones { 1, 8, 8, 3 }).shape[2])      --> 8
flow.layers.RandomCrop: In training, a random part, height by width, of the pictures.
  print(layers.RandomCrop(4, 6)(flow.ones { 1, 8, 8, 3 }).shape[2])      --> 4
flow.layers.Equalization: In training, each channel's values are spread so that all are about as frequent.
  print(layers.Equalization()(flow.tensor { { { { 10 }, { 20 }, { 30 } } } }))
flow.layers.ContrastLimitedAdaptiveHistogramEqualization: The same in tiles, which leaves even parts of a picture unchanged.
  local spread = layers.ContrastLimitedAdaptiveHistogramEqualization { tile_grid_size = { 2, 2 } }
  print(spread(flow.ones { 1, 8, 8, 3 }).shape[2])      --> 8
flow.layers.MixUp: In training, the weighted mean of each picture and another one of the batch; of their labels, too.
  local mixed = layers.MixUp { seed = 1 } { images = flow.ones { 2, 4, 4, 3 }, labels = flow.one_hot({ 0, 1 }, 2) }
  print(mixed.labels.shape[2])      --> 2
flow.layers.CutMix: In training, a box of each picture is replaced by that of another one; labels are mixed by its size.
  local mixed = layers.CutMix { seed = 1 } { images = flow.ones { 2, 4, 4, 3 }, labels = flow.one_hot({ 0, 1 }, 2) }
  print(mixed.labels.shape[2])      --> 2
flow.layers.RandAugment: In training, num_ops random changes of pictures, one after the other.
  print(layers.RandAugment { num_ops = 1 }(flow.ones { 1, 8, 8, 3 }).shape[2])      --> 8
flow.layers.AugMix: In training, a random mean of pictures and of what chains of random changes make of them.
  print(layers.AugMix { num_chains = 1 }(flow.ones { 1, 8, 8, 3 }).shape[2])      --> 8
layer.bounding_box_format: What the four numbers of a box are, of layers that move boxes with pictures; nil where it was not given.
  local flip = layers.RandomFlip("horizontal", { bounding_box_format = "xyxy", seed = 1 })
  local data = { images = flow.ones { 8, 8, 3 }, bounding_boxes = { boxes = { { 0, 0, 2, 3 } }, labels = { 1 } } }
  print(flip.bounding_box_format .. " " .. flip(data).bounding_boxes.boxes.shape[2])      --> xyxy 4
flow.layers.MaxNumBoundingBoxes: The first max_number of the boxes of each picture, filled up with -1.
  local data = { images = flow.ones { 1, 4, 4, 3 }, bounding_boxes = { boxes = flow.ones { 1, 2, 4 }, labels = flow.ones { 1, 2 } } }
  print(layers.MaxNumBoundingBoxes(3)(data).bounding_boxes.labels)
flow.layers.SpectralNormalization: A layer whose kernel is divided by its largest singular value in training.
  local dense = layers.SpectralNormalization(layers.Dense(3), 2)
  print(dense(flow.ones { 2, 4 }, { training = true }).shape[2])      --> 3
flow.layers.Pipeline: Layers that prepare data, one after the other, as one layer.
  local prepare = layers.Pipeline { layers.RandomFlip "horizontal", layers.RandomBrightness(0.2) }
  print(prepare(flow.ones { 1, 4, 4, 3 }).shape[2])      --> 4
flow.layers.MelSpectrogram: Signals as pictures of their frequencies, {num_mel_bins, frames}, in decibels, even in mel.
  local spectrogram = layers.MelSpectrogram { fft_length = 64, sequence_stride = 32, num_mel_bins = 8 }
  print(spectrogram(flow.random.normal { 2, 256 }).shape[2])      --> 8
flow.layers.STFTSpectrogram: Signals {batch, samples, channels} as the strength of their frequencies, by kernels that training may change.
  print(layers.STFTSpectrogram { frame_length = 16 }(flow.ones { 1, 64, 1 }).shape[3])      --> 9
flow.layers.ReversibleEmbedding:
  local embedding = layers.ReversibleEmbedding(10, 4)
  local vectors = embedding(flow.tensor({ { 1, 2, 3 } }, { dtype = "int32" }))
  print(embedding(vectors, { reverse = true }).shape[3])      --> 10
flow.layers.AdaptiveMaxPooling1D: The largest values of windows that divide the steps into output_size parts.
  print(layers.AdaptiveMaxPooling1D(3)(flow.ones { 1, 7, 2 }).shape[2])      --> 3
flow.layers.AdaptiveMaxPooling2D: The largest values of windows that divide height and width into output_size parts.
  print(layers.AdaptiveMaxPooling2D(3)(flow.ones { 1, 6, 7, 2 }).shape[2])      --> 3
flow.layers.AdaptiveMaxPooling3D: The largest values of windows that divide depth, height and width into output_size parts.
  print(layers.AdaptiveMaxPooling3D(3)(flow.ones { 1, 4, 5, 6, 2 }).shape[2])      --> 3
flow.layers.Lambda: A function as a layer; files do not hold it.
  print(layers.Lambda(function(x, options) return x * options.by end, { arguments = { by = 3 } })(flow.ones { 2 })[1]:item())      --> 3
flow.layers.RNN: A cell, or several, over the steps of a sequence; a cell may be written in Lua.
  print(layers.RNN({ layers.LSTMCell(8), layers.GRUCell(4) }, { return_sequences = true })(flow.ones { 1, 3, 4 }).shape[3])      --> 4
flow.layers.StackedRNNCells: Several cells as one, each reading what the one before it gives.
  print(#layers.StackedRNNCells({ layers.LSTMCell(8), layers.GRUCell(4) }).state_size)      --> 2
flow.layers.SimpleRNNCell:
  print(#layers.SimpleRNNCell(8)(flow.ones { 1, 4 }, { flow.zeros { 1, 8 } }))      --> 2
flow.layers.LSTMCell:
  print(#layers.LSTMCell(8)(flow.ones { 1, 4 }, { flow.zeros { 1, 8 }, flow.zeros { 1, 8 } }))      --> 3
flow.layers.GRUCell:
  print(#layers.GRUCell(8)(flow.ones { 1, 4 }, { flow.zeros { 1, 8 } }))      --> 2
flow.layers.TimeDistributed: A layer or model applied to every step of a sequence.
  print(layers.TimeDistributed(layers.Conv2D(2, 3))(flow.ones { 1, 5, 8, 8, 3 }).shape[2])      --> 5
flow.layers.Wrapper: A layer that holds another one, for classes of yours that extend it.
  local Twice = layers.Wrapper:extend "Twice"
  function Twice:call(x) return self.layer(x) * 2 end
  print(Twice(layers.Dense(3))(flow.ones { 1, 4 }).shape[2])      --> 3
flow.layers.Flatten:
  print(layers.Flatten()(flow.ones { 2, 3, 4 }).shape[2])      --> 12
flow.layers.Identity:
  print(layers.Identity()(flow.ones { 1, 2 }))
flow.layers.Permute:
  print(layers.Permute { 2, 1 }(flow.ones { 1, 3, 4 }).shape[2])      --> 4
flow.layers.RepeatVector:
  print(layers.RepeatVector(3)(flow.ones { 1, 4 }).shape[2])      --> 3
flow.layers.Reshape:
  print(layers.Reshape { 2, 3 }(flow.ones { 1, 6 }).shape[2])      --> 2
Layer.extend: A class of layers of your own: init(), build(input_shape) and call(x) are yours to write.
  local Twice = layers.Layer:extend("Twice")
  function Twice:call(x) return x * 2 end
  print(Twice()(flow.ones { 1, 2 }))
layer:add_weight: A variable of the layer: { name =, shape =, initializer =, trainable =, regularizer = }.
  local Bias = layers.Layer:extend("Bias")
  function Bias:build(shape) self.b = self:add_weight { name = "b", shape = { shape[#shape] }, initializer = "zeros" } end
  function Bias:call(x) return x + self.b end
  print(Bias()(flow.ones { 1, 2 }))
layer:add_loss: Adds a number, computed in call(), to what training makes small.
  local Penalty = layers.Layer:extend("Penalty")
  function Penalty:call(x)
    self:add_loss((x * x):mean() * 0.01)
    return x
  end
  print(Penalty()(flow.ones { 1, 2 }))
flow.layers.add: The sum of several tensors, as layers.Add() gives it.
  print(layers.add { flow.ones { 2, 3 }, flow.ones { 2, 3 } })
flow.layers.subtract: The first of two tensors less the second, as layers.Subtract() gives it.
  print(layers.subtract { flow.ones { 2, 3 }, flow.ones { 2, 3 } })
flow.layers.multiply: The product of several tensors, element by element, as layers.Multiply() gives it.
  print(layers.multiply { flow.ones { 2, 3 }, flow.full({ 2, 3 }, 2) })
flow.layers.average: The mean of several tensors, element by element, as layers.Average() gives it.
  print(layers.average { flow.ones { 2, 3 }, flow.zeros { 2, 3 } })
flow.layers.maximum: The largest of several tensors, element by element, as layers.Maximum() gives it.
  print(layers.maximum { flow.ones { 2, 3 }, flow.zeros { 2, 3 } })
flow.layers.minimum: The smallest of several tensors, element by element, as layers.Minimum() gives it.
  print(layers.minimum { flow.ones { 2, 3 }, flow.zeros { 2, 3 } })
flow.layers.concatenate: Several tensors joined along an axis, the last one unless it is named, as layers.Concatenate() gives it.
  print(layers.concatenate({ flow.ones { 2, 3 }, flow.ones { 2, 1 } }).shape[2])      --> 4
flow.layers.dot: The products of two tensors, summed along an axis of each, sample by sample, as layers.Dot() gives them.
  print(layers.dot({ flow.ones { 2, 3 }, flow.ones { 2, 3 } }, 2))
flow.layers.TextVectorization: Strings to the numbers of their tokens in a vocabulary, or to rows that mark, count or weigh them.
  local vectorize = layers.TextVectorization { output_sequence_length = 3 }
  vectorize:adapt { "one fish", "two fish" }
  print(vectorize { "two red fish" })
flow.layers.StringLookup: Strings to their numbers in a vocabulary, or to encodings of them; invert: back.
  print(layers.StringLookup({ vocabulary = { "a", "b" } }) { "b", "z" })
flow.layers.IntegerLookup: Whole numbers to their numbers in a vocabulary, or to encodings of them; invert: back.
  print(layers.IntegerLookup({ vocabulary = { 7, 9 } })(flow.tensor({ 9, 1 }, { dtype = "int64" })))
flow.layers.CategoryEncoding: Whole numbers to rows that mark or count them.
  print(layers.CategoryEncoding({ num_tokens = 4 })(flow.tensor { { 0, 2 } }))
flow.layers.Discretization: Numbers to the bins that they fall into, given or learnt from data.
  print(layers.Discretization({ bin_boundaries = { 0, 1 } })(flow.tensor { -1, 0.5, 3 }))
flow.layers.Hashing: Strings and numbers to bins, without a vocabulary.
  print(layers.Hashing({ num_bins = 5 }) { "a", "b" })
flow.layers.HashedCrossing: The combination of several strings or whole numbers to a bin.
  print(layers.HashedCrossing({ num_bins = 5 }) { { "a", "b" }, { "x", "y" } })
layer:build: Makes the layer's variables for an input shape, whose batch is -1.
  local dense = layers.Dense(2)
  dense:build { -1, 3 }
  print(dense:count_params())      --> 8
layer:call: What the layer computes; a layer of your own defines it.
  local Twice = layers.Layer:extend("Twice")
  function Twice:call(x) return x * 2 end
  print(Twice()(flow.ones { 1 , 1 }):item())      --> 2
layer:adapt: Learns mean and variance of data, a tensor or a data set.
  local normalization = layers.Normalization()
  normalization:adapt(flow.tensor { { 1 }, { 3 } })
layer:compute_mask: The mask of the layer's output for inputs and their mask, nil without one; a layer of your own may define it.
  local Twice = layers.Layer:extend("Twice")
  function Twice:call(x) return x * 2 end
  function Twice:compute_mask(inputs, mask) return mask end
  print(Twice()(flow.ones { 1, 2 }))
layer:get_vocabulary: The tokens of a lookup or a TextVectorization, in the order of their numbers.
  print(layers.StringLookup({ vocabulary = { "a" } }):get_vocabulary()[1])      --> [UNK]
layer:set_vocabulary: Gives a lookup or a TextVectorization its tokens: a list, or the path of a file with one in each line.
  local lookup = layers.StringLookup()
  lookup:set_vocabulary { "a", "b" }
  print(lookup { "b" })
layer:vocabulary_size: How many numbers tokens have, those of special ones included.
  print(layers.StringLookup({ vocabulary = { "a" } }):vocabulary_size())      --> 2
layer:reset_state: Of recurrent layers with stateful = true: sets what they keep from call to call to zeros.
  local recurrent = layers.GRU(2, { stateful = true })
  recurrent(flow.ones { 1, 3, 4 })
  recurrent:reset_state()
  print(recurrent.states[1]:value():sum():item())      --> 0
layer:reset_states: The same as reset_state.
  local recurrent = layers.GRU(2, { stateful = true })
  recurrent(flow.ones { 1, 3, 4 })
  recurrent:reset_states()
  print(recurrent.states[1]:value():sum():item())      --> 0
layer:count_params: The number of all weights.
  local dense = layers.Dense(2)
  dense(flow.ones { 1, 3 })
  print(dense:count_params())      --> 8
layer:get_weights: The values of all variables as a list of tensors.
  local dense = layers.Dense(2)
  dense(flow.ones { 1, 3 })
  print(#dense:get_weights())      --> 2
layer:set_weights: Sets all variables, in the order of get_weights().
  local dense = layers.Dense(1)
  dense(flow.ones { 1, 1 })
  dense:set_weights { flow.tensor { { 5 } }, flow.tensor { 0 } }
layer:get_config: The arguments that make the layer again, as a table.
  print(layers.Dense(2):get_config().units)      --> 2
]==]
