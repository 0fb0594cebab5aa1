-- data.lua: what flow.help says of data sets, files and helpers: see reference/texts.lua for the form.
return [==[
Dataset.from_tensor_slices: The rows of a tensor, or of several side by side: { x, y }.
  local ds = flow.data.Dataset.from_tensor_slices { flow.ones { 4, 2 }, flow.zeros { 4 } }
  print(ds:len())      --> 4
Dataset.from_tensors: One element: a tensor, or several side by side.
  print(flow.data.Dataset.from_tensors(flow.ones { 4 }):len())      --> 1
Dataset.from_generator: The elements that a function's iterator returns.
  local ds = flow.data.Dataset.from_generator(function()
    local i = 0
    return function()
      i = i + 1
      if i <= 3 then return flow.tensor(i) end
    end
  end, { output_signature = { { shape = {}, dtype = "float32" } } })
  for x in ds:iter() do print(x:item()) end
Dataset.range: Whole numbers from start (0) up to, but without, stop.
  print(flow.data.Dataset.range(5):len())      --> 5
Dataset.list_files: The paths that match a pattern, shuffled unless shuffle = false.
  flow.io.write("a.txt", "a")
  print(flow.data.Dataset.list_files("*.txt", false):len())      --> 1
Dataset.zip: The elements of data sets side by side, or as tables by name: zip { x = a, y = b }.
  print(flow.data.Dataset.zip({ flow.data.Dataset.range(2), flow.data.Dataset.range(3) }):len())      --> 2
Dataset.counter: start, start + step, ... without end.
  for x in flow.data.Dataset.counter(3, 2):take(2):iter() do print(x:item()) end
Dataset.random: Random whole numbers without end, the same in every pass.
  print(flow.data.Dataset.random(1):take(3):cardinality() ~= 0)      --> true
Dataset.load: The elements that dataset:save wrote.
  flow.data.Dataset.range(3):save("numbers")
  for x in flow.data.Dataset.load("numbers"):iter() do print(x:item()) end
dataset:save: Writes all elements into a folder, for Dataset.load.
  flow.data.Dataset.range(3):save("numbers")
dataset:snapshot: Keeps the elements of the first pass in a folder, for later passes and processes.
  print(flow.data.Dataset.range(4):snapshot("kept"):len())      --> 4
dataset:window: Windows of size elements, a data set for each component, for flat_map and loops.
  local ds = flow.data.Dataset.range(5):window(3, { shift = 1, drop_remainder = true }):flat_map(function(w) return w:batch(3) end)
  for x in ds:iter() do print(x) end
dataset:group_by_window: Elements with the same key, gathered, as what a function makes of each group.
  local ds = flow.data.Dataset.range(6):group_by_window(function(x) return x % 2 end, function(key, group) return group:batch(3) end,
    { window_size = 3 })
  for x in ds:iter() do print(x) end
dataset:bucket_by_sequence_length: Padded batches of sequences of similar lengths.
  local ds = flow.data.Dataset.range(4):map(function(x) return x:expand_dims(1) end)
  ds = ds:bucket_by_sequence_length(function(x) return x.shape[1] end, { 2 }, { 2, 1 })
  for x in ds:iter() do print(x.shape[1], x.shape[2]) end
dataset:scan: Results of f(state, element), which returns the next state and a result.
  local ds = flow.data.Dataset.range(4):scan(flow.tensor(0), function(sum, x) return sum + x, sum + x end)
  for x in ds:iter() do print(x:item()) end
dataset:unique: Each number or string once.
  for x in flow.data.Dataset.from_tensor_slices({ "a", "b", "a" }):unique():iter() do print(x) end
dataset:rejection_resample: Pairs of a class and an element; some elements are left out so that classes come as often as asked.
  local ds = flow.data.Dataset.range(8):rejection_resample(function(x) return x % 2 end, { 0.5, 0.5 }, { seed = 1 })
  for class, x in ds:take(1):iter() do print(class:item(), x:item()) end
dataset:take_while: The elements before the first one for which a function gives false.
  for x in flow.data.Dataset.range(9):take_while(function(x) return x:lt(2) end):iter() do print(x:item()) end
dataset:ignore_errors: Leaves out elements that cannot be made.
  print(flow.data.Dataset.range(4):ignore_errors():cardinality())      --> -2
dataset:get_single_element: The one element that there is.
  print(flow.data.Dataset.range(1):get_single_element():item())      --> 0
dataset:assert_cardinality: The elements, of which there have to be this many.
  print(flow.data.Dataset.range(4):filter(function(x) return x:lt(2) end):assert_cardinality(2):len())      --> 2
dataset:as_numpy_iterator: A pass over the elements, as iter().
  for x in flow.data.Dataset.range(2):as_numpy_iterator() do print(x:item()) end
dataset:ragged_batch: Not supported: padded_batch fills rows up.
  print(pcall(function() return flow.data.Dataset.range(2):ragged_batch(2) end))
dataset:sparse_batch: Not supported: batch gives whole tensors.
  print(pcall(function() return flow.data.Dataset.range(2):sparse_batch(2) end))
dataset:batch: Batches of batch_size elements; the last is smaller, or dropped.
  print(flow.data.Dataset.range(5):batch(2):len())      --> 3
dataset:padded_batch: Batches whose elements differ in size, filled up with zeros, or with padding_values: numbers or texts.
  print(flow.data.Dataset.range(4):batch(3):padded_batch(2, { padded_shapes = { -1 } }):len())      --> 1
dataset:unbatch: The rows of batches as elements.
  print(flow.data.Dataset.range(4):batch(2):unbatch():cardinality() ~= 0)      --> true
dataset:rebatch: Batches of another size.
  for x in flow.data.Dataset.range(4):batch(2):rebatch(4):iter() do print(x.shape[1]) end      --> 4
dataset:map: The elements as a function changes them; it is traced once and runs in C threads.
  local ds = flow.data.Dataset.range(3):map(function(x) return x * 2 end)
  for x in ds:iter() do print(x:item()) end
dataset:filter: The elements for which a function gives true.
  local ds = flow.data.Dataset.range(4):filter(function(x) return x:gt(1) end)
  for x in ds:iter() do print(x:item()) end
dataset:shuffle: The elements in random order, drawn from a buffer of buffer_size.
  print(flow.data.Dataset.range(4):shuffle(4, { seed = 1 }):len())      --> 4
dataset:repeat_: The elements again and again, or count times.
  print(flow.data.Dataset.range(4):repeat_(2):len())      --> 8
dataset:take: The first elements.
  print(flow.data.Dataset.range(4):take(2):len())      --> 2
dataset:skip: All but the first elements.
  print(flow.data.Dataset.range(4):skip(1):len())      --> 3
dataset:shard: Every num_shards-th element, from index on, which counts from 0.
  print(flow.data.Dataset.range(4):shard(2, 0):len())      --> 2
dataset:cache: Keeps the elements of the first pass in memory, or in a file.
  print(flow.data.Dataset.range(4):cache():len())      --> 4
dataset:prefetch: Prepares elements while earlier ones are used.
  print(flow.data.Dataset.range(4):prefetch(flow.AUTOTUNE):len())      --> 4
dataset:interleave: The elements of the data sets that a function makes of each element, in turn.
  local ds = flow.data.Dataset.range(2):interleave(function() return flow.data.Dataset.range(2) end)
  for x in ds:iter() do print(x:item()) end
dataset:flat_map: The elements of the data sets that a function makes, one after the other.
  local ds = flow.data.Dataset.range(2):flat_map(function() return flow.data.Dataset.range(2) end)
  for x in ds:iter() do print(x:item()) end
dataset:concatenate: The elements of another data set after its own.
  print(flow.data.Dataset.range(2):concatenate(flow.data.Dataset.range(3)):len())      --> 5
dataset:enumerate: The number of each element, from start (0), before its components.
  for i, x in flow.data.Dataset.range(2):enumerate():iter() do print(i:item(), x:item()) end
dataset:reduce: One value from all elements: f(state, element) gives the next state.
  print(flow.data.Dataset.range(4):reduce(flow.tensor(0), function(sum, x) return sum + x end):item())      --> 6
dataset:apply: What a function makes of the data set.
  print(flow.data.Dataset.range(4):apply(function(ds) return ds:take(1) end):len())      --> 1
dataset:iter: A pass over the elements, for a for loop.
  for x in flow.data.Dataset.range(2):iter() do print(x:item()) end
dataset:len: The number of elements; an error if it is infinite or unknown.
  print(flow.data.Dataset.range(4):len())      --> 4
dataset:cardinality: The number of elements; -1: infinite, -2: unknown.
  print(flow.data.Dataset.range(4):repeat_():cardinality())      --> -1
dataset:with_options: The same elements, with options such as { auto_shard_policy = "DATA" }.
  print(flow.data.Dataset.range(4):with_options({ auto_shard_policy = "DATA" }):len())      --> 4
dataset:options: The options of the data set.
  print(flow.data.Dataset.range(4):options() ~= nil)      --> true
dataset:stats: What each stage did in the last pass.
  local ds = flow.data.Dataset.range(2)
  for _ in ds:iter() do end
  print(type(ds:stats()))      --> table
iterator:next: The next element, or nil.
  print(flow.data.Dataset.range(2):iter():next():item())      --> 0
iterator:get_next: The next element; an error at the end.
  print(flow.data.Dataset.range(2):iter():get_next():item())      --> 0
iterator:get_next_as_optional: The next element as an object with has_value() and get_value().
  print(flow.data.Dataset.range(0):iter():get_next_as_optional():has_value())      --> false
optional:has_value: Whether there was one more element.
  print(flow.data.Dataset.range(1):iter():get_next_as_optional():has_value())      --> true
optional:get_value: Its values; an error at the end.
  print(flow.data.Dataset.range(1):iter():get_next_as_optional():get_value():item())      --> 0
iterator:save: The position as a text.
  local it = flow.data.Dataset.range(3):iter()
  it:next()
  print(#it:save() > 0)      --> true
iterator:restore: Goes on at a position that save() returned.
  local ds = flow.data.Dataset.range(3)
  local it = ds:iter()
  it:next()
  local again = ds:iter()
  again:restore(it:save())
  print(again:next():item())      --> 1
iterator:skip: Leaves elements out.
  local it = flow.data.Dataset.range(3):iter()
  it:skip(2)
  print(it:next():item())      --> 2
iterator:stats: What each stage has done so far.
  print(type(flow.data.Dataset.range(3):iter():stats()))      --> table
iterator:close: Ends the pass and releases its memory.
  flow.data.Dataset.range(3):iter():close()
flow.data.Options: Options of a data set, as tf.data.Options() has them.
  local options = flow.data.Options()
  options.experimental_distribute.auto_shard_policy = flow.data.AutoShardPolicy.OFF
  print(flow.data.Dataset.range(2):with_options(options):len())      --> 2
flow.data.TFRecordDataset: The records of TFRecord files as texts.
  local writer = flow.data.TFRecordWriter("a.tfrecord")
  writer:write("hello")
  writer:close()
  for record in flow.data.TFRecordDataset("a.tfrecord"):iter() do print(record) end
flow.data.TFRecordWriter: Writes records into a TFRecord file.
  local writer = flow.data.TFRecordWriter("a.tfrecord")
  writer:write("hello")
  writer:close()
flow.data.parse_example: What ds:map takes to parse records of tf.train.Example.
  local writer = flow.data.TFRecordWriter("a.tfrecord")
  writer:write_example({ label = 3 }, { label = "int64" })
  writer:close()
  local ds = flow.data.TFRecordDataset("a.tfrecord"):map(flow.data.parse_example { label = "int64" })
  for label in ds:iter() do print(label) end
flow.data.serialize_example: A record of tf.train.Example of named values.
  print(#flow.data.serialize_example({ label = 3 }, { label = "int64" }) > 0)      --> true
flow.data.TextLineDataset: The lines of text files, one after the other.
  flow.io.write("lines.txt", "first\nsecond\n")
  for line in flow.data.TextLineDataset("lines.txt"):iter() do print(line) end
flow.TensorSpec: The shape and dtype of a component, for output_signature of from_generator.
  print(flow.TensorSpec({ -1, 3 }, "int32").dtype)      --> int32
flow.data.load_csv: The columns of a .csv file as tensors by name.
  flow.io.write("a.csv", "x,y\n1,2\n3,4\n")
  print(flow.data.load_csv("a.csv").x)
flow.data.experimental.CsvDataset: The records of .csv files as values in the order of the columns, with defaults for empty fields.
  flow.io.write("a.csv", "x,y\n1,2\n,4\n")
  for x, y in flow.data.experimental.CsvDataset("a.csv", { 0.5, "int32" }, { header = true }):iter() do print(x:item(), y:item()) end
flow.data.experimental.make_csv_dataset: Batches of the columns of .csv files, { name = values }, with the label, for ever.
  flow.io.write("a.csv", "x,y\n1,2\n3,4\n")
  local ds = flow.data.experimental.make_csv_dataset("a.csv", 2, { label_name = "y", num_epochs = 1, shuffle = false })
  for x, y in ds:iter() do print(x.x, y) end
flow.data.experimental.cardinality: The number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY.
  print(flow.data.experimental.cardinality(flow.data.Dataset.range(3)))      --> 3
flow.data.experimental.Counter: Numbers from start on in steps, without end.
  print(flow.data.experimental.Counter(5):take(1):get_single_element():item())      --> 5
flow.data.experimental.get_single_element: The only element of a data set.
  print(flow.data.experimental.get_single_element(flow.data.Dataset.range(1)):item())      --> 0
flow.data.experimental.shuffle_and_repeat: For apply: shuffle before repeat_.
  print(flow.data.Dataset.range(3):apply(flow.data.experimental.shuffle_and_repeat(3, 2)):cardinality())      --> 6
flow.data.experimental.assert_cardinality: For apply: assert_cardinality of data sets.
  print(flow.data.Dataset.range(3):apply(flow.data.experimental.assert_cardinality(3)):cardinality())      --> 3
flow.data.experimental.bucket_by_sequence_length: For apply: bucket_by_sequence_length of data sets.
  local bucket = flow.data.experimental.bucket_by_sequence_length
  local ds = flow.data.Dataset.from_generator(function() return coroutine.wrap(function()
    for n = 1, 4 do coroutine.yield(flow.ones { n }) end
  end) end, { output_signature = flow.TensorSpec({ -1 }, "float32") })
  for x in ds:apply(bucket(function(x) return x.shape[1] end, { 3 }, { 2, 2 })):iter() do print(x) end
flow.data.experimental.enumerate_dataset: For apply: enumerate of data sets.
  print(flow.data.Dataset.range(3):apply(flow.data.experimental.enumerate_dataset(1)):cardinality())      --> 3
flow.data.experimental.group_by_window: For apply: group_by_window of data sets.
  local ds = flow.data.Dataset.range(4):apply(flow.data.experimental.group_by_window(function(x) return x % 2 end,
    function(key, window) return window:batch(2) end, 2))
  for x in ds:iter() do print(x) end
flow.data.experimental.ignore_errors: For apply: ignore_errors of data sets.
  print(flow.data.Dataset.range(3):apply(flow.data.experimental.ignore_errors()) ~= nil)      --> true
flow.data.experimental.rejection_resample: For apply: rejection_resample of data sets.
  local ds = flow.data.Dataset.range(4):apply(flow.data.experimental.rejection_resample(function(x) return x % 2 end, { 0.5, 0.5 }))
  print(ds ~= nil)      --> true
flow.data.experimental.scan: For apply: scan of data sets.
  local sums = flow.data.experimental.scan(flow.tensor(0, "int64"), function(sum, x) return sum + x, sum + x end)
  local ds = flow.data.Dataset.range(3):apply(sums)
  for x in ds:iter() do print(x:item()) end
flow.data.experimental.snapshot: For apply: snapshot of data sets.
  print(flow.data.Dataset.range(3):apply(flow.data.experimental.snapshot("snapshots")) ~= nil)      --> true
flow.data.experimental.take_while: For apply: take_while of data sets.
  print(flow.data.Dataset.range(3):apply(flow.data.experimental.take_while(function(x) return x:lt(2) end)) ~= nil)      --> true
flow.data.experimental.unbatch: For apply: unbatch of data sets.
  print(flow.data.Dataset.range(4):batch(2):apply(flow.data.experimental.unbatch()) ~= nil)      --> true
flow.data.experimental.unique: For apply: unique of data sets.
  print(flow.data.Dataset.range(3):apply(flow.data.experimental.unique()) ~= nil)      --> true
flow.audio.decode_wav: The sound in a string that holds a WAVE file, float32 {samples, channels}, and samples a second.
  flow.io.save_wav("tone.wav", flow.tensor { 0, 0.5, -0.5 }, 8000)
  local sound, rate = flow.audio.decode_wav(flow.io.read_file("tone.wav"))
  print(sound.shape[1], rate)
writer:write: Adds a record.
  local writer = flow.data.TFRecordWriter("a.tfrecord")
  writer:write("hello")
  writer:close()
writer:write_example: Adds a record of tf.train.Example.
  local writer = flow.data.TFRecordWriter("a.tfrecord")
  writer:write_example({ label = 3 }, { label = "int64" })
  writer:close()
writer:close: Writes what is left and closes the file.
  flow.data.TFRecordWriter("a.tfrecord"):close()
writer:flush: Writes what is left.
  local writer = flow.summary.create_file_writer("logs")
  writer:flush()
  writer:close()
flow.summary.create_file_writer: Writes event files for TensorBoard.
  local writer = flow.summary.create_file_writer("logs")
  writer:scalar("loss", 0.5, 1)
  writer:close()
writer:scalar: A number at a step.
  local writer = flow.summary.create_file_writer("logs")
  writer:scalar("loss", 0.5, 1)
  writer:close()
writer:histogram: A histogram of values at a step.
  local writer = flow.summary.create_file_writer("logs")
  writer:histogram("weights", flow.arange(10), 1)
  writer:close()
writer:image: Pictures at a step.
  local writer = flow.summary.create_file_writer("logs")
  writer:image("pictures", flow.zeros({ 1, 4, 4, 3 }, { dtype = "uint8" }), 1)
  writer:close()
writer:text: A text at a step.
  local writer = flow.summary.create_file_writer("logs")
  writer:text("note", "hello", 1)
  writer:close()
writer:keras_model: The graph of a model, as its JSON.
  local writer = flow.summary.create_file_writer("logs")
  writer:keras_model("keras", flow.Sequential({ layers.Input { 2 }, layers.Dense(1) }):to_json(), 0)
  writer:close()
flow.image_dataset_from_directory: The pictures of a folder with one subfolder for each class, as batches.
  for _, class in ipairs { "a", "b" } do
    flow.io.makedirs("pictures/" .. class)
    flow.image.save("pictures/" .. class .. "/1.png", flow.zeros({ 4, 4, 3 }, { dtype = "uint8" }))
  end
  local ds = flow.image_dataset_from_directory("pictures", { image_size = { 4, 4 }, batch_size = 2 })
  print(table.concat(ds.class_names, " "))      --> a b
flow.text_dataset_from_directory: The .txt files of a folder with one subfolder for each class, as batches of strings.
  for _, class in ipairs { "bad", "good" } do
    flow.io.makedirs("reviews/" .. class)
    flow.io.write("reviews/" .. class .. "/1.txt", "a " .. class .. " film")
  end
  local ds = flow.text_dataset_from_directory("reviews", { batch_size = 2, shuffle = false, verbose = false })
  for text, label in ds:iter() do print(text, label) end
flow.audio_dataset_from_directory: The WAVE files of a folder with one subfolder for each class, as batches.
  for _, class in ipairs { "high", "low" } do
    flow.io.makedirs("tones/" .. class)
    flow.io.save_wav("tones/" .. class .. "/1.wav", flow.zeros { 100 }, 8000)
  end
  local ds = flow.audio_dataset_from_directory("tones", { batch_size = 2, output_sequence_length = 80, verbose = false })
  for sound in ds:iter() do print(sound.shape[1], sound.shape[2], sound.shape[3]) end
flow.datasets.mnist: The handwritten digits of IDX files in a folder: x_train, y_train, x_test, y_test.
  print(pcall(flow.datasets.mnist, { path = "nowhere" }))
flow.datasets.mnist.load_data: The same, under Keras' name.
  print(pcall(flow.datasets.mnist.load_data, "nowhere"))
flow.datasets.load_idx: The tensor of an IDX file, .gz or not.
  print(pcall(flow.datasets.load_idx, "nowhere"))
flow.utils.to_categorical: Labels, from 0, as rows with a single 1.
  print(flow.utils.to_categorical(flow.tensor { 0, 1 }, 2))
flow.utils.normalize: Rows divided by their norm.
  print(flow.utils.normalize(flow.tensor { { 3, 4 } }))
Dataset.choose_from_datasets: Elements of several data sets in the order that a data set of their numbers, from 0, says.
  local a, b = flow.data.Dataset.range(0, 3), flow.data.Dataset.range(10, 13)
  for x in flow.data.Dataset.choose_from_datasets({ a, b }, flow.data.Dataset.from_tensor_slices { 1, 0, 1 }):iter() do print(x:item()) end
Dataset.sample_from_datasets: Elements of several data sets, drawn at random by weights.
  local a, b = flow.data.Dataset.range(0, 3), flow.data.Dataset.range(10, 13)
  for x in flow.data.Dataset.sample_from_datasets({ a, b }, { weights = { 0, 1 } }):iter() do print(x:item()) end
flow.timeseries_dataset_from_array: Windows over the rows of data, each with the target of its first row, in batches.
  local x = flow.arange(0, 10):to("float32")
  for window, target in flow.timeseries_dataset_from_array(x, x[{ { 4, 10 } }], 3, { batch_size = 4 }):iter() do print(window, target) end
flow.utils.FeatureSpace: Tables of raw features, strings and numbers, to one encoded vector.
  local raw = { age = { 20, 30, 40 }, job = { "cook", "smith", "cook" } }
  local space = flow.utils.FeatureSpace { features = { age = "float_normalized", job = "string_categorical" } }
  space:adapt(flow.data.Dataset.from_tensor_slices(raw))
  print(space(raw))
FeatureSpace.feature: A feature of your own: a layer or a function that encodes raw values of a dtype.
  local half = flow.utils.FeatureSpace.feature("float32", function(x) return x / 2 end, "float")
  print(flow.utils.FeatureSpace { features = { x = half } } { x = { 1, 2 } })
FeatureSpace.float: A number as it is.
  print(flow.utils.FeatureSpace { features = { x = flow.utils.FeatureSpace.float() } } { x = { 1, 2 } })
FeatureSpace.float_rescaled: A number times scale plus offset.
  print(flow.utils.FeatureSpace { features = { x = flow.utils.FeatureSpace.float_rescaled(0.5) } } { x = { 1, 2 } })
FeatureSpace.float_normalized: A number less the mean, over the standard deviation.
  print(flow.utils.FeatureSpace.float_normalized().dtype)      --> float32
FeatureSpace.float_discretized: The bin that a number falls into.
  print(flow.utils.FeatureSpace.float_discretized(4).output_mode)      --> one_hot
FeatureSpace.integer_categorical: A whole number by its place in a vocabulary.
  print(flow.utils.FeatureSpace.integer_categorical().dtype)      --> int32
FeatureSpace.string_categorical: A string by its place in a vocabulary.
  print(flow.utils.FeatureSpace.string_categorical { max_tokens = 10 }.dtype)      --> string
FeatureSpace.integer_hashed: A whole number by the bin of its hash.
  print(flow.utils.FeatureSpace.integer_hashed(8).output_mode)      --> one_hot
FeatureSpace.string_hashed: A string by the bin of its hash.
  print(flow.utils.FeatureSpace.string_hashed(8).dtype)      --> string
FeatureSpace.cross: Several features together by the bin of their hash.
  print(flow.utils.FeatureSpace.cross({ "job", "city" }, 16).name)      --> job_X_city
space:adapt: Learns what the features need to know: vocabularies, means, boundaries.
  local space = flow.utils.FeatureSpace { features = { x = "float_normalized" } }
  space:adapt { x = { 1, 3 } }
  print(space { x = { 1, 3 } })
space:save: Writes a .keras file with all that adapt has learned; flow.load_model reads it, and so does Keras.
  local space = flow.utils.FeatureSpace { features = { x = "float_normalized" } }
  space:adapt { x = { 1, 3 } }
  space:save "space.keras"
  print(flow.load_model("space.keras") { x = { 5 } }:item())      --> 3
space:get_inputs: The features as Inputs of a model, by name.
  print(flow.utils.FeatureSpace({ features = { x = "float" } }):get_inputs().x.shape[2])      --> 1
space:get_preprocessed_features: What the preprocessors give for these Inputs, by name.
  print(flow.utils.FeatureSpace({ features = { x = "float" } }):get_preprocessed_features().x.shape[2])      --> 1
space:get_encoded_features: What a model goes on with: the encoded features of these Inputs.
  local space = flow.utils.FeatureSpace { features = { age = "float", size = "float" } }
  local model = flow.Model { inputs = space:get_inputs(), outputs = flow.layers.Dense(1)(space:get_encoded_features()) }
  print(model:predict({ age = flow.tensor { 1, 2 }, size = flow.tensor { 3, 4 } }, { verbose = 0 }).shape[1])      --> 2
flow.utils.DatasetCreator: Data for fit, evaluate and predict that each worker makes by itself, by a function of an input context.
  local creator = flow.utils.DatasetCreator(function(context)
    return flow.data.Dataset.from_tensor_slices { flow.ones { 8, 2 }, flow.ones { 8, 1 } }:batch(context:get_per_replica_batch_size(4))
  end)
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  model:compile { loss = "mse" }
  print(#model:fit(creator, { epochs = 2, verbose = 0 }).epoch)      --> 2
flow.utils.skipgrams: Pairs of words that stand near each other, with the label 1, and as many of random words, with the label 0.
  local couples, labels = flow.utils.skipgrams({ 3, 1, 2 }, { vocabulary_size = 10, window_size = 1, seed = 1 })
  print(#couples + #labels)      --> 16
flow.utils.make_sampling_table: How probably `skipgrams` takes each word, of words in the order of how frequent they are.
  print(#flow.utils.make_sampling_table(10))      --> 10
flow.utils.pad_sequences: Lists of different lengths as one tensor, filled up and cut.
  print(flow.utils.pad_sequences({ { 1 }, { 2, 3 } }))
flow.utils.split_dataset: Two data sets of the first and the last elements.
  local left = flow.utils.split_dataset(flow.data.Dataset.range(4), { left_size = 3 })
  print(left:len())      --> 3
flow.utils.load_img: The picture in a file.
  flow.image.save("a.png", flow.zeros({ 4, 6, 3 }, { dtype = "uint8" }))
  print(flow.utils.load_img("a.png", { target_size = { 2, 2 } }).shape[1])      --> 2
flow.utils.save_img: Writes numbers as a picture: the least becomes black, the largest white.
  flow.utils.save_img("a.png", flow.random.uniform { 4, 4, 3 })
flow.utils.img_to_array: A picture as float32 numbers.
  print(flow.utils.img_to_array(flow.zeros({ 4, 4 }, { dtype = "uint8" })).dtype)      --> float32
flow.utils.array_to_img: Numbers as a picture of 0 to 255.
  print(flow.utils.array_to_img(flow.random.uniform { 4, 4, 1 }).dtype)      --> uint8
flow.utils.smart_resize: Pictures of another size, cut to the new aspect ratio before.
  print(flow.utils.smart_resize(flow.zeros { 4, 8, 3 }, { 2, 2 }).shape[2])      --> 2
flow.utils.get_file: The path of a file of Keras' cache, which has to be there: nothing is downloaded.
  print(pcall(flow.utils.get_file, "none.zip", "https://example.org/none.zip"))
flow.utils.isinstance: Whether an object is of a class, of one that extends it, or of one of a list of classes.
  print(flow.utils.isinstance(flow.layers.Dense(2), { flow.layers.Conv2D, flow.layers.Dense }))      --> true
flow.utils.is_keras_tensor: Whether something is a symbolic tensor.
  print(flow.utils.is_keras_tensor(flow.Input { 2 }))      --> true
flow.utils.standardize_dtype: The name of a dtype.
  print(flow.utils.standardize_dtype())      --> float32
flow.utils.register_keras_serializable: Lets models with your own class open without custom_objects.
  local Twice = flow.utils.register_keras_serializable("mine")(layers.Layer:extend "Twice")
  function Twice:call(x) return x * 2 end
  print(flow.utils.get_registered_name(Twice))      --> mine>Twice
flow.utils.get_registered_name: The name that files have for a class.
  print(flow.utils.get_registered_name(layers.Layer:extend "Own"))      --> Own
flow.utils.get_registered_object: The class of a registered name, or nil.
  print(flow.utils.get_registered_object "none>None")      --> nil
flow.utils.get_custom_objects: The registered classes and functions by name.
  print(type(flow.utils.get_custom_objects()))      --> table
flow.utils.custom_object_scope: Calls a function while files find these classes by name.
  print(flow.utils.custom_object_scope({ Own = layers.Layer:extend "Own" }, function()
    return flow.utils.get_registered_object "Own" ~= nil
  end))      --> true
PyDataset.extend: A class of batches of your own.
  print(flow.utils.PyDataset:extend("Mine") ~= nil)      --> true
flow.utils.Sequence: PyDataset under its older name.
  print(flow.utils.Sequence == flow.utils.PyDataset)      --> true
layer:save_assets: Writes what a layer knows beside its weights, such as a vocabulary, into a folder.
  local lookup = layers.StringLookup()
  lookup:adapt { "a", "b" }
  lookup:save_assets "lookup"
layer:load_assets: Reads what save_assets wrote.
  local lookup = layers.StringLookup()
  lookup:adapt { "a", "b" }
  lookup:save_assets "lookup"
  local other = layers.StringLookup()
  other:load_assets "lookup"
  print(#other:get_vocabulary())      --> 3
flow.utils.PyDataset: Batches that a class of yours makes by number, for fit.
  local Squares = flow.utils.PyDataset:extend "Squares"
  function Squares:__len__() return 3 end
  function Squares:__getitem__(index) return flow.full({ 2, 1 }, index), flow.full({ 2, 1 }, index * index) end
  local model = flow.Sequential { layers.Input { 1 }, layers.Dense(1) }
  model:compile { loss = "mse" }
  model:fit(Squares(), { verbose = 0 })
flow.utils.plot_model: Writes the graph of a model's layers as a picture.
  flow.utils.plot_model(flow.Sequential { layers.Input { 2 }, layers.Dense(1) }, "m.svg")
flow.utils.set_random_seed: The seed of all that is drawn from now on.
  flow.utils.set_random_seed(1)
flow.utils.pack_x_y_sample_weight: A batch as { x, y, sample_weight }.
  print(#flow.utils.pack_x_y_sample_weight(1, 2))      --> 2
flow.utils.unpack_x_y_sample_weight: x, y and sample_weight of a batch.
  print(flow.utils.unpack_x_y_sample_weight { 1, 2 })
flow.io.save_wav: Writes a sound with values from -1 to 1 as a WAVE file.
  flow.io.save_wav("tone.wav", (flow.arange(0, 100) / 10):sin() / 2, 8000)
flow.io.load_wav: The sound in a WAVE file, float32 {samples, channels}, and samples a second.
  flow.io.save_wav("tone.wav", flow.tensor { 0, 0.5, -0.5 }, 8000)
  local sound, rate = flow.io.load_wav("tone.wav")
  print(sound.shape[1], rate)
flow.io.read_file: All bytes of a file, as a string.
  local file = io.open("notes.txt", "w")
  file:write("hello")
  file:close()
  print(flow.io.read_file("notes.txt"))      --> hello
flow.io.exists: Whether a path leads to something.
  print(flow.io.exists("nowhere"))      --> false
flow.io.isdir: Whether a path leads to a folder.
  print(flow.io.isdir("."))      --> true
flow.io.makedirs: Makes a folder and those above it.
  flow.io.makedirs("a/b")
flow.io.listdir: The names in a folder, sorted.
  flow.io.makedirs("a/b")
  print(flow.io.listdir("a")[1])      --> b
flow.io.glob: The paths that match a pattern or a list of them, sorted.
  flow.io.write("a.txt", "a")
  print(flow.io.glob("*.txt")[1])      --> a.txt
flow.io.join: Parts of a path with slashes between them.
  print(flow.io.join("runs", "7"))      --> runs/7
flow.io.basename: The last part of a path.
  print(flow.io.basename("runs/7/log.csv"))      --> log.csv
flow.io.dirname: A path without its last part.
  print(flow.io.dirname("runs/7/log.csv"))      --> runs/7
flow.io.path: The path of this machine that a path means: gs://bucket/file is /gcs/bucket/file.
  print(flow.io.path("a.txt"))      --> a.txt
flow.io.copy: Copies a file.
  flow.io.write("a.txt", "a")
  flow.io.copy("a.txt", "b.txt", true)
flow.io.rename: Gives a file or a folder another name.
  flow.io.write("a.txt", "a")
  flow.io.rename("a.txt", "c.txt", true)
flow.io.remove: Removes a file.
  flow.io.write("a.txt", "a")
  flow.io.remove("a.txt")
flow.io.rmtree: Removes a folder and all in it.
  flow.io.makedirs("a/b")
  flow.io.rmtree("a")
flow.io.write: Writes a text as a whole file: readers see the old content or the new, never a part.
  flow.io.write("a.txt", "hello")
flow.io.gfile.GFile: A file as Lua's io.open gives it.
  local file = flow.io.gfile.GFile("a.txt", "w")
  file:write("hello")
  file:close()
flow.args: The command line of a script, typed by its defaults.
  local args = flow.args({ epochs = 3 }, { "--epochs", "5" })
  print(args.epochs)      --> 5
flow.log: The natural logarithm; and where messages go: flow.log.sink = function(level, text) ... end.
  print(flow.log(flow.tensor { 1 }):item())      --> 0
flow.log.print: Prints what a user asked for, where messages go.
  flow.log.print("%d epochs", 3)
flow.log.info: Says what a user may want to know, where messages go.
  flow.log.info("%d epochs", 3)
flow.log.warning: Says what a user should know, where messages go.
  flow.log.warning("%d epochs", 3)
flow.help: What there is to know of a function, a class, a method or a name; without one, where to begin.
  flow.help "model:fit"
  flow.help(flow.layers.Dense)
flow.repl: The prompt inside of another program: input(prompt) returns a line or nil, output(text) shows one.
  local lines = { "1 + 1" }
  flow.repl(function() return table.remove(lines, 1) end, print)      --> 2
]==]
