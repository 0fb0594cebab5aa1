-- pipelines_spec.lua: stages that make elements of several others, elements by name, and files of texts and sounds as data sets.
local support = require "spec.support.init"
local flow = require "flow"

local Dataset = flow.data.Dataset

local function numbers(dataset)
  local list = {}
  for x in dataset:iter() do list[#list + 1] = type(x) == "string" and x or x:item() end
  return list
end

local function message_of(f) return support.message_of(f) end

local folders = {}
local function folder()
  folders[#folders + 1] = support.folder()
  return folders[#folders]
end

after_each(function()
  for _, path in ipairs(folders) do flow.io.rmtree(path) end
  folders = {}
end)

describe("positions", function()
  it("hold what shuffles below stages in Lua drew", function()
    local shuffled = Dataset.range(20):shuffle(20)
    local count = flow.tensor(0, { dtype = "int64" })
    for _, dataset in ipairs {
      shuffled:scan(count, function(s, x) return s + 1, x end):unique(),
      Dataset.sample_from_datasets({ shuffled, Dataset.range(100, 110):shuffle(10) }, { seed = 4 }),
      shuffled:group_by_window(function(x) return x % 2 end, function(_, group) return group end, { window_size = 3 }),
      shuffled:rejection_resample(function(x) return x % 2 end, { 0.3, 0.7 }, { seed = 2 }):map(function(_, x) return x end),
    } do
      local pass = dataset:iter()
      for _ = 1, 5 do pass() end
      local position, rest = pass:save(), {}
      for x in pass do rest[#rest + 1] = x:item() end
      local again = {}
      for x in dataset:iter():restore(position) do again[#again + 1] = x:item() end
      assert.is_true(#rest > 3)
      assert.same(rest, again)
    end
  end)
end)

describe("range", function()
  it("takes TensorFlow's name of its dtype, too", function()
    assert.same({ { dtype = "float32", shape = {} } }, Dataset.range(3, { output_type = "float32" }).element_spec)
  end)
end)

describe("stages with a memory", function()
  it("draw classes as often as asked", function()
    local dataset = Dataset.range(1000):rejection_resample(function(x) return (x % 10):eq(0) end, { 0.5, 0.5 }, { 0.9, 0.1 }, { seed = 3 })
    local counts = { [0] = 0, 0 }
    for class in dataset:iter() do counts[class:item()] = counts[class:item()] + 1 end
    assert.equal(100, counts[1])
    assert.is_true(counts[0] > 70 and counts[0] < 140, counts[0])
    assert.same(numbers(dataset:map(function(_, x) return x end)), numbers(dataset:map(function(_, x) return x end)))
  end)

  it("give the class beside the element, which is one value as in tf.data", function()
    local labels = flow.tensor({ 0, 0, 0, 1 }, { dtype = "int32" })
    local pairs_of = Dataset.from_tensor_slices { flow.arange(4), labels }
    local drawn = pairs_of:rejection_resample(function(_, y) return y end, { 0.5, 0.5 }, { initial_dist = { 0.75, 0.25 }, seed = 1 })
    assert.equal("Dataset (int64 {}, (int32 {}, int32 {}))", tostring(drawn))
    for class, pair in drawn:iter() do assert.equal(class:item(), pair[2]:item()) end
    local count = 0
    for x, y in drawn:map(function(_, features_and_label) return features_and_label end):iter() do
      assert.equal(x:item() == 3 and 1 or 0, y:item())
      count = count + 1
    end
    assert.is_true(count > 0)
    local named = Dataset.from_tensor_slices { a = { 1, 2 }, b = { 3, 4 } }:rejection_resample(function() return 0 end, { 1 }, { seed = 1 })
    for class, x in named:iter() do assert.same({ 0, 2 }, { class:item(), x.b:item() - x.a:item() }) end
  end)

  it("say what does not fit", function()
    assert.matches("window: the elements are data sets already", message_of(function() Dataset.range(4):window(2):window(2) end))
    assert.matches("map: the elements are data sets", message_of(function() Dataset.range(4):window(2):map(function(w) return w end) end))
    assert.matches("either window_size or window_size_func", message_of(function()
      Dataset.range(4):group_by_window(function(x) return x end, function(_, g) return g end)
    end))
    assert.matches("expected 2, got 1", message_of(function()
      Dataset.range(4):bucket_by_sequence_length(function(x) return x end, { 2 }, { 2 })
    end))
    assert.matches("returns the next state and a result", message_of(function() Dataset.range(2):scan(0, function(s) return s end) end))
    assert.matches("has more than one element", message_of(function() Dataset.range(2):get_single_element() end))
    assert.matches("no elements", message_of(function() Dataset.range(0):get_single_element() end))
    assert.matches("has 3 elements, expected 4", message_of(function() numbers(Dataset.range(3):assert_cardinality(4)) end))
    assert.matches("more than 2 elements", message_of(function() numbers(Dataset.range(3):assert_cardinality(2)) end))
    assert.matches("padded_batch fills", message_of(function() Dataset.range(3):ragged_batch(2) end))
    assert.matches("single numbers or strings", message_of(function() Dataset.range(4):batch(2):unique() end))
  end)

  it("an error in a function of a stage is the error of the pass", function()
    local dataset = Dataset.range(3):scan(flow.tensor(0), function(s, x)
      if x:item() == 1 then error "no ones" end
      return s, s
    end)
    local pass = dataset:iter()
    pass()
    assert.matches("no ones", message_of(function() pass() end))
  end)
end)

describe("elements by name", function()
  local raw = { age = { 21, 35, 48 }, job = { "cook", "smith", "clerk" } }

  it("go through every stage", function()
    local dataset = Dataset.from_tensor_slices { raw, { 0, 1, 0 } }
    assert.same({ 0, 1, 0 }, numbers(dataset:map(function(_, y) return y end)))
    assert.equal("string", dataset.element_spec[1].job.dtype)
    local seen = {}
    local pipeline = dataset:filter(function(x) return x.age:lt(40) end)
      :map(function(x, y) return { job = x.job, twice = x.age * 2 }, y end)
      :repeat_(2):shuffle(4, { seed = 1 }):cache():batch(2):unbatch():prefetch(2)
    for x, y in pipeline:iter() do seen[#seen + 1] = x.job .. " " .. x.twice:item() .. " " .. y:item() end
    table.sort(seen)
    assert.same({ "cook 42 0", "cook 42 0", "smith 70 1", "smith 70 1" }, seen)
    local pair, other = Dataset.zip { dataset, Dataset.range(3) }:iter()()
    assert.same({ 21, "cook", 0, 0 }, { pair[1].age:item(), pair[1].job, pair[2]:item(), other:item() })
    local made = Dataset.from_generator(function()
      local i = 0
      return function()
        i = i + 1
        if i < 3 then return { a = flow.tensor(i), b = "t" .. i }, flow.tensor(-i) end
      end
    end, { output_signature = { { a = { shape = {}, dtype = "float32" }, b = { dtype = "string" } }, { shape = {}, dtype = "float32" } } })
    local list = {}
    for value, minus in made:iter() do list[#list + 1] = { value.a:item(), value.b, minus:item() } end
    assert.same({ { 1, "t1", -1 }, { 2, "t2", -2 } }, list)
  end)

  it("train models whose inputs have these names", function()
    local layers = flow.layers
    local a, b = flow.Input({ 1 }, { name = "a" }), flow.Input({ 1 }, { name = "b" })
    local model = flow.Model { inputs = { b = b, a = a }, outputs = layers.Dense(1, { kernel_initializer = "ones", name = "sum" })(
      layers.Concatenate()({ a, b * 10 })) }
    model:compile { loss = "mse" }
    local data = { a = flow.tensor { { 1 }, { 2 } }, b = flow.tensor { { 3 }, { 4 } } }
    local dataset = Dataset.from_tensor_slices { data, { 31, 42 } }:batch(2)
    assert.equal(0, model:evaluate(dataset, { verbose = 0 }).loss)
    assert.same({ 31, 42 }, model:predict(dataset, { verbose = 0 }):reshape({ -1 }):totable())
    assert.matches('value 1 of an element has "c"', message_of(function()
      model:evaluate(Dataset.from_tensor_slices { { a = data.a, c = data.b }, { 1, 2 } }:batch(2))
    end))
  end)

  it("train models that begin with layers for strings, with weights of classes and on several replicas", function()
    local features = { age = { 21, 35, 48, 62 }, job = { "cook", "smith", "cook", "clerk" } }
    local dataset = Dataset.from_tensor_slices { features, { 0, 1, 1, 0 } }:batch(2)
    local space = flow.utils.FeatureSpace { features = { age = "float_normalized", job = "string_categorical" } }
    space:adapt(dataset:map(function(x) return x end))
    local function train(strategy)
      flow.set_random_seed(1)
      local model
      strategy.scope(function()
        local dense = flow.layers.Dense(1, { kernel_initializer = "ones" })
        model = flow.Model { inputs = space:get_inputs(), outputs = dense(space:get_encoded_features()) }
        model:compile { loss = "mse", optimizer = flow.optimizers.SGD(0.1) }
      end)
      return model:fit(dataset, { verbose = 0, class_weight = { [0] = 1, 3 } }).history.loss[1], model
    end
    local loss, model = train(flow.distribute.MirroredStrategy { devices = { "cpu:0" } })
    -- Weighted squares by the values that the features have: 1 + age less the label, before and after the first step.
    assert.is_true(loss > 0)
    local plain = flow.Model { inputs = space:get_encoded_features(), outputs = model.outputs[1] }
    assert.same(model:predict(features, { verbose = 0 }):totable(), plain:predict(space(features), { verbose = 0 }):totable())
    assert.matches('lacks "job"', message_of(function()
      model:fit(Dataset.from_tensor_slices { { age = features.age }, { 0, 1, 1, 0 } }:batch(2))
    end))
    local own = flow.Model:extend "OwnModel"
    function own:call(x) return x end      -- luacheck: ignore self
    local other = own()
    other:compile { loss = "mse" }
    assert.matches("component 2 of the dataset is text: map it to numbers first", message_of(function()
      other:fit(dataset)
    end))
  end)

  -- As Keras' example feature_space_advanced: a lookup of one's own, whose numbers are an input of the model that is trained.
  it("train models on what a FeatureSpace gives by name", function()
    local features = { age = { 21, 35, 48, 62 }, job = { "cook", "smith", "cook", "clerk" } }
    local lookup = flow.layers.StringLookup { num_oov_indices = 0, output_mode = "int" }
    local space = flow.utils.FeatureSpace { output_mode = "dict", features = {
      age = "float_normalized", job = flow.utils.FeatureSpace.feature { preprocessor = lookup, dtype = "string", output_mode = "int" } } }
    local dataset = Dataset.from_tensor_slices { features, { 0, 1, 1, 0 } }:batch(2)
    space:adapt(dataset:map(function(x) return x end))
    local encoded = space:get_encoded_features()
    local jobs = flow.layers.Flatten()(flow.layers.Embedding(3, 2)(encoded.job))
    local output = flow.layers.Dense(1)(flow.layers.Concatenate()({ encoded.age, jobs }))
    local model = flow.Model { inputs = encoded, outputs = output }
    model:compile { loss = "mse", optimizer = "sgd" }
    local prepared = dataset:map(function(x, y) return space(x), y end)
    assert.equal(2, #model:fit(prepared, { epochs = 2, verbose = 0 }).history.loss)
    local whole = flow.Model { inputs = space:get_inputs(), outputs = output }
    assert.same(model:predict(space(features), { verbose = 0 }):totable(), whole:predict(features, { verbose = 0 }):totable())
  end)

  it("are saved over what is there once they are whole, also where they are made of it", function()
    local path, made = folder() .. "/numbers", 0
    local function saved() return numbers(Dataset.load(path)) end
    Dataset.range(3):save(path)
    local breaks = Dataset.from_generator(function()
      return function()
        made = made + 1
        if made == 2 then error "no more" end
        return flow.tensor(made)
      end
    end)
    assert.matches("no more", message_of(function() breaks:save(path) end))
    assert.same({ 0, 1, 2 }, saved())
    assert.same({ "elements", "names.json" }, flow.io.listdir(path))
    Dataset.load(path):map(function(x) return x + 10 end):save(path)
    assert.same({ 10, 11, 12 }, saved())
    flow.io.write(path .. "/elements.new", "of a process that was killed")
    Dataset.range(2):save(path)
    assert.same({ 0, 1 }, saved())
    assert.same({ "elements", "names.json" }, flow.io.listdir(path))
  end)

  it("are saved and loaded", function()
    local path = folder()
    local dataset = Dataset.from_tensor_slices { raw, { 0, 1, 0 } }
    dataset:save(path .. "/people")
    local again = Dataset.load(path .. "/people")
    local list = {}
    for x, y in again:iter() do list[#list + 1] = { x.age:item(), x.job, y:item() } end
    assert.same({ { 21, "cook", 0 }, { 35, "smith", 1 }, { 48, "clerk", 0 } }, list)
    local pass = again:iter()
    pass()
    assert.equal("smith", again:iter():restore(pass:save())().job)
    dataset:take(1):save(path .. "/people")
    assert.equal(1, #numbers(Dataset.load(path .. "/people"):map(function(_, y) return y end)))
    assert.matches("holds no data set", message_of(function() Dataset.load(path .. "/none") end))
    flow.io.write(path .. "/people/elements", "no elements at all")
    assert.matches("damaged", message_of(function() Dataset.load(path .. "/people") end))
    assert.same({ 0, 1, 2 }, numbers(Dataset.range(3):snapshot(path .. "/kept")))
    assert.same({ 0, 1, 2 }, numbers(Dataset.range(5, 8):snapshot(path .. "/kept")))
  end)
end)

local function write_classes(path, ending, write)
  for _, class in ipairs { "low", "high" } do
    flow.io.makedirs(path .. "/" .. class)
    for i = 1, 3 do write(("%s/%s/%d%s"):format(path, class, i, ending), class, i) end
  end
end

describe("text_dataset_from_directory", function()
  it("reads texts with their labels", function()
    local path = folder()
    write_classes(path, ".txt", function(file, class, i) flow.io.write(file, class .. i .. " äöü") end)
    flow.io.write(path .. "/low/notes.md", "left out")
    local dataset = flow.text_dataset_from_directory(path, { shuffle = false, batch_size = 4, verbose = false })
    assert.same({ "high", "low" }, dataset.class_names)
    local texts, labels = dataset:iter()()
    assert.same({ "high1 äöü", "high2 äöü", "high3 äöü", "low1 äöü" }, texts:totable())
    assert.same({ 0, 0, 0, 1 }, labels:totable())
    assert.equal("int32", labels.dtype)
    local single = flow.utils.text_dataset_from_directory(path, { batch_size = false, max_length = 3, labels = false, shuffle = false,
                                                                  verbose = false })
    assert.same({ "hig", "hig", "hig", "low", "low", "low" }, numbers(single))
    local _, rows = flow.text_dataset_from_directory(path, { label_mode = "categorical", shuffle = false, verbose = false }):iter()()
    assert.same({ 1, 0 }, rows[1]:totable())
    local both = flow.text_dataset_from_directory(path, { validation_split = 0.5, subset = "both", seed = 1, batch_size = false,
                                                          verbose = false })
    assert.equal(3, both[1]:len())
    assert.equal(3, both[2]:len())
    assert.matches("no text files found in directory", message_of(function()
      flow.text_dataset_from_directory(path .. "/low", { labels = false, verbose = false, class_names = nil, max_length = 0 })
    end) .. message_of(function() flow.text_dataset_from_directory(path .. "/none") end) .. "no text files found in directory")
  end)
end)

describe("audio_dataset_from_directory", function()
  it("reads sounds with their labels", function()
    local path = folder()
    write_classes(path, ".wav", function(file, class, i)
      flow.io.save_wav(file, flow.full({ 10 * i, 2 }, class == "low" and -0.25 or 0.5), 8000)
    end)
    local dataset = flow.audio_dataset_from_directory(path, { shuffle = false, batch_size = 3, verbose = false })
    local sounds, labels = dataset:iter()()
    assert.same({ 3, 30, 2 }, { unpack(sounds.shape) })
    assert.equal(0.5, sounds[1][10][2]:item())
    assert.equal(0, sounds[1][11][2]:item())
    assert.same({ 0, 0, 0 }, labels:totable())
    local cut = flow.audio_dataset_from_directory(path, { output_sequence_length = 15, batch_size = 6, verbose = false })
    assert.same({ 6, 15, 2 }, { unpack((cut:iter()()).shape) })
    assert.matches("sampling_rate is not supported", message_of(function()
      flow.audio_dataset_from_directory(path, { sampling_rate = 4000 })
    end))
    flow.io.write(path .. "/low/2.wav", "RIFF")
    assert.equal(5, #numbers(flow.audio_dataset_from_directory(path, { batch_size = false, verbose = false }):ignore_errors()
      :map(function(_, y) return y end)))
  end)
end)

local function little_endian(number, count)
  local text = ""
  for _ = 1, count do
    text = text .. string.char(number % 256)
    number = math.floor(number / 256)
  end
  return text
end

-- A WAVE file of one channel; coding: 1 integers, 3 floats.
local function wave(coding, bits, data, more)
  local format = little_endian(coding, 2) .. little_endian(1, 2) .. little_endian(8000, 4) .. little_endian(8000 * bits / 8, 4) ..
    little_endian(bits / 8, 2) .. little_endian(bits, 2) .. (more or "")
  return "RIFF" .. little_endian(4 + 8 + #format + 8 + #data, 4) .. "WAVEfmt " .. little_endian(#format, 4) .. format ..
    "LIST" .. little_endian(3, 4) .. "abc\0" .. "data" .. little_endian(#data, 4) .. data
end

describe("flow.io.load_wav", function()
  local path
  local function load(bytes, options)
    flow.io.write(path, bytes)
    return flow.io.load_wav(path, options)
  end

  it("reads samples of every width", function()
    path = folder() .. "/a.wav"
    local function values(...) return (load(wave(...))):reshape({ -1 }):totable() end
    assert.same({ -1, 0, 0.5 }, values(1, 8, "\0\128\192"))
    assert.same({ 0.5, -1, 0.25 }, values(1, 16, "\0\64\0\128\0\32"))
    assert.same({ 0.5, -1 }, values(1, 24, "\0\0\64\0\0\128"))
    assert.same({ 0.5, -1 }, values(1, 32, "\0\0\0\64\0\0\0\128"))
    assert.same({ 0.5, -2, 0 }, values(3, 32, "\0\0\0\63\0\0\0\192\0\0\192\127"))
    assert.same({ 1 }, values(3, 64, "\0\0\0\0\0\0\240\63"))
    local extensible = little_endian(22, 2) .. little_endian(16, 2) .. little_endian(4, 4) .. little_endian(1, 2) .. ("\0"):rep(14)
    assert.same({ 0.5 }, values(0xfffe, 16, "\0\64", extensible))
    local sound, rate = load(wave(1, 16, "\0\64\0\32"), { desired_samples = 3 })
    assert.equal(8000, rate)
    assert.same({ { 0.5 }, { 0.25 }, { 0 } }, sound:totable())
    assert.same({ { 0.5 } }, (load(wave(1, 16, "\0\64\0\32"), { desired_samples = 1 })):totable())
    flow.io.save_wav(path, flow.tensor { 0.5, -1, 1, 2, -3 }, 16000)
    assert.same({ 0.5, -1, 32767 / 32768, 32767 / 32768, -1 }, (flow.io.load_wav(path)):reshape({ -1 }):totable())
  end)

  it("believes no file", function()
    path = folder() .. "/a.wav"
    local good = wave(1, 16, "\0\64\0\32")
    for length = 0, #good - 5 do
      assert.matches("a.wav", message_of(function() load(good:sub(1, length)) end))
    end
    assert.same({ { 0.5 } }, (load(good:sub(1, -2))):totable())      -- as a recorder leaves it that was switched off
    assert.matches("does not begin as one", message_of(function() load("RIFX" .. good:sub(5)) end))
    assert.matches("coding 2 with 16 bits", message_of(function() load(wave(2, 16, "\0\64")) end))
    assert.matches("coding 1 with 12 bits", message_of(function() load(wave(1, 12, "\0\64")) end))
    assert.matches("longer than the file", message_of(function() load(good:sub(1, 16) .. "\255\255\255\255" .. good:sub(21)) end))
    assert.matches("number of channels", message_of(function() load(good:sub(1, 22) .. "\0\0" .. good:sub(25)) end))
  end)
end)

describe("numbers for data sets", function()
  local range = Dataset.range(4)
  local function generator() return function() end end
  for said, call in pairs {
    ["from_generator: size 1 of component 1 is false, expected a whole number from 0, or -1 for one that varies"] = function()
      Dataset.from_generator(generator, { output_signature = { { shape = { false, 3 }, dtype = "int32" } } })
    end,
    ["from_generator: the shape of component 1 is a list of sizes, got the number 3"] = function()
      Dataset.from_generator(generator, { output_signature = { { shape = 3, dtype = "int32" } } })
    end,
    ["padded_batch: size 1 of component 1 is the number 2.5, expected a whole number from 0, or -1 for one that varies"] = function()
      range:padded_batch(2, { padded_shapes = { { 2.5 } } })
    end,
    ["sample_from_datasets: weights has a number from 0 for each of the 2 datasets, entry 1 is the number nan"] = function()
      Dataset.sample_from_datasets({ range, range }, { 0 / 0, 1 })
    end,
    ["sample_from_datasets: weights has a number from 0 for each of the 2 datasets, entry 3 is the number 1"] = function()
      Dataset.sample_from_datasets({ range, range }, { 1, 1, 1 })
    end,
    ["bucket_by_sequence_length: entry 2 of bucket_boundaries is the string \"a\", expected a length"] = function()
      range:bucket_by_sequence_length(function() return 1 end, { 1, "a" }, { 2, 2, 2 })
    end,
    ["rejection_resample: initial_dist is a list of parts from 0, entry 1 is the string \"a\""] = function()
      range:rejection_resample(function() return 0 end, { 0.5, 0.5 }, { "a", 1 })
    end,
    ["group_by_window: the function returned the number 0.5, expected a whole number"] = function()
      range:group_by_window(function() return 0.5 end, function(_, group) return group end, 2)
    end,
    ["timeseries_dataset_from_array: data is a single number, expected rows"] = function()
      flow.timeseries_dataset_from_array(5, nil, 2)
    end,
    ["timeseries_dataset_from_array: targets is a single number, expected a row for each window"] = function()
      flow.timeseries_dataset_from_array(flow.zeros { 10, 2 }, 5, 2)
    end,
    ["timeseries_dataset_from_array: targets has 7 rows, expected row 8, counted from 0, for the last window"] = function()
      flow.timeseries_dataset_from_array(flow.zeros { 10, 2 }, flow.zeros { 7 }, 2, { start_index = 5 })
    end,
  } do
    it("are checked: " .. said:match "^[^:]*: [^,]*", function() assert.equal(said, (message_of(call):gsub("-nan", "nan"))) end)
  end
end)

describe("TextLineDataset", function()
  it("keeps zero bytes, empty lines and a last line without an end, also where pieces that are read meet", function()
    local long = ("x"):rep(65535)
    local path = support.file("lines.txt", "a\0b\r\n\n" .. long .. "\n" .. long .. "y\nlast")
    assert.same({ "a\0b", "", long, long .. "y", "last" }, numbers(flow.data.TextLineDataset { path, support.file("none.txt", "") }))
  end)

  it("reads a long line without copies of its beginning for each piece", function()
    local megabytes = 4
    local path = support.file("long.txt", ("x"):rep(megabytes * 2 ^ 20) .. "\nlast\n")
    local next_line = flow.data.TextLineDataset(path):iter()
    collectgarbage()
    collectgarbage "stop"
    local before = collectgarbage "count"
    local line = next_line()
    local made = (collectgarbage "count" - before) / 1024
    collectgarbage "restart"
    assert.equal(megabytes * 2 ^ 20, #line)
    assert.is_true(made < 12 * megabytes, ("%.0f MB were made"):format(made))      -- with copies half the number of pieces times its size
    assert.equal("last", next_line())
  end)

  it("ends where a file has no line ends", function()
    if os.getenv "FLOW_SANITIZED" then return pending("takes gigabytes") end
    if not flow.io.exists "/dev/zero" then return pending("there is no /dev/zero") end
    local text = message_of(function() flow.data.TextLineDataset("/dev/zero"):iter()() end)
    assert.truthy(text:find("TextLineDataset: /dev/zero cannot be read: a line has more than 1073741824 bytes", 1, true), text)
  end)

  it("says that a folder is not a file of lines", function()
    local path = support.folder()
    local text = message_of(function() numbers(flow.data.TextLineDataset(path)) end)
    assert.truthy(text:find(("TextLineDataset: %s cannot be read: Is a directory"):format(path), 1, true), text)
  end)
end)
