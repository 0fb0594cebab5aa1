-- holes_spec.lua: a list with nil in it, { -1, nil, -2 }, is an error that names the position, wherever a list may be given: an ipairs over
-- it would end before the hole and leave out what follows without a word.
local support = require "spec.support.init"
local flow = require "flow"
local ffi = require "ffi"
local native = require "flow.ffi"

local C = native.C

-- Types of arguments of the library's records that may be lists.
local LISTS = { pair = true, triple = true, single = true, shape = true, sizes = true, axes = true, numbers = true, sides = true,
  ["volume sides"] = true }

-- Calls with a hole, one a line.
local CALLS = [[
  S.PiecewiseConstantDecay({ 10, nil, 20 }, { 1, 0.5, 0.1, 0.2 })
  S.PiecewiseConstantDecay({ 10, 20, 30 }, { 1, nil, 0.1, 0.1 })
  S.PiecewiseConstantDecay { boundaries = { 10, nil, 20 }, values = { 1, 0.5, 0.1, 0.2 } }
  M.Precision { thresholds = { 0.1, nil, 0.5 } }
  M.Recall({ 0.1, nil, 0.5 })
  M.AUC { thresholds = { 0.1, nil, 0.5 } }
  M.AUC { multi_label = true, num_labels = 3, label_weights = { 0.1, nil, 0.5 } }
  M.IoU { num_classes = 4, target_class_ids = { 0, nil, 1 } }
  M.IoU(4, { 0, nil, 1 })
  M.OneHotIoU { num_classes = 4, target_class_ids = { 0, nil, 1 } }
  M.BinaryIoU { target_class_ids = { 0, nil, 1 } }
  M.MeanMetricWrapper(function() end, { list = { 1, nil, 2 } })
  flow.losses.CategoricalFocalCrossentropy { alpha = { 0.1, nil, 0.2 } }
  flow.losses.CategoricalFocalCrossentropy({ 0.1, nil, 0.2 })
  L.StringLookup { vocabulary = { "a", nil, "b" } }
  L.StringLookup { vocabulary = { "a", "c", "b" }, idf_weights = { 1, nil, 2 }, output_mode = "tf_idf" }
  L.IntegerLookup { vocabulary = { 1, nil, 2 } }
  L.TextVectorization { vocabulary = { "a", nil, "b" } }
  L.TextVectorization { ngrams = { 1, nil, 2 } }
  L.TextVectorization { vocabulary = { "a", "b" , "c"}, idf_weights = { 1, nil, 2 }, output_mode = "tf_idf" }
  L.StringLookup():set_vocabulary({ "a", nil, "b" })
  L.StringLookup():adapt({ "a", nil, "b" })
  L.TextVectorization():adapt({ "a", nil, "b" })
  L.Discretization { bin_boundaries = { 0, nil, 1 } }
  L.Discretization({ 0, nil, 1 })
  L.Normalization { mean = { 0, nil, 1 }, variance = { 1, 1, 1 } }
  L.Normalization { axis = { -1, nil, 1 } }
  L.Rescaling { scale = { 0, nil, 1 } }
  L.Rescaling({ 0, nil, 1 })
  L.RandomRotation({ -0.1, nil, 1 })
  L.RandomZoom({ -0.1, nil, 1 })
  L.RandomBrightness({ -0.1, nil, 1 })
  L.RandomTranslation({ -0.1, nil, 1 }, 0.1)
  L.RandomContrast { factor = { 0.1, nil, 0.2 } }
  L.RandomErasing { factor = { 0.1, nil, 0.2 } }
  L.RandomShear { x_factor = { 0.1, nil, 0.2 } }
  L.RandomGaussianBlur { kernel_size = { 3, nil, 3 } }
  L.Equalization { value_range = { 0, nil, 255 } }
  L.Pipeline { L.Rescaling(1), nil, L.Rescaling(2) }
  L.StackedRNNCells { L.LSTMCell(1), nil, L.LSTMCell(2) }
  L.AdaptiveAveragePooling2D({ 1, nil, 2 })
  L.Concatenate()({ x, nil, x })
  L.Add()({ x, nil, x })
  L.MultiHeadAttention { num_heads = 1, key_dim = 2, attention_axes = { 2, nil, 3 } }
  L.LayerNormalization { axis = { -1, nil, -2 } }
  L.UnitNormalization { axis = { -1, nil, -2 } }
  L.Dot { axes = { 1, nil, 2 } }
  L.Dense(3, { input_shape = { 3, nil, 4 } })
  L.Dense(3, { weights = { x, nil, x } })
  L.InputLayer { input_shape = { 3, nil, 4 } }
  L.InputLayer { 3, nil, 4 }
  flow.Input { batch_shape = { 3, nil, 4 } }
  flow.keras.Input { shape = { 3, nil, 4 } }
  L.HashedCrossing(4)({ { "a" }, nil, { "b" } })
  L.Layer:extend("A")():add_weight { shape = { 1, nil, 2 } }
  flow.initializers.Constant({ 1, nil, 2 })
  flow.initializers.Constant { value = { 1, nil, 2 } }
  flow.initializers.GlorotUniform()({ 1, nil, 2 })
  flow.constraints.MaxNorm { axis = { 1, nil, 2 } }
  flow.optimizers.Adam { learning_rate = { 1, nil, 2 } }
  flow.optimizers.Adam():exclude_from_weight_decay { var_names = { "a", nil, "b" } }
  flow.optimizers.SGD():apply_gradients({ { x, x }, nil, { x, x } })
  flow.optimizers.Muon { exclude_layers = { "a", nil, "b" } }
  flow.Sequential { L.Dense(1), nil, L.Dense(2) }
  flow.Sequential({ layers = { L.Dense(1), nil, L.Dense(2) } })
  flow.Model { inputs = { input, nil, input }, outputs = input }
  flow.Model { inputs = input, outputs = { input, nil, input } }
  model():compile { optimizer = "sgd", loss = "mse", metrics = { "mae", nil, "mse" } }
  model():compile { optimizer = "sgd", loss = "mse", weighted_metrics = { "mae", nil, "mse" } }
  model():compile { optimizer = "sgd", loss = "mse", loss_weights = { 1, nil, 2 } }
  trained():fit(rows, rows, { callbacks = { flow.callbacks.History(), nil, flow.callbacks.History() }, verbose = 0 })
  trained():fit(rows, rows, { validation_freq = { 1, nil, 2 }, verbose = 0, validation_data = { rows, rows } })
  trained():fit(rows, rows, { sample_weight = { 1, nil, 2 }, verbose = 0 })
  trained():predict({ rows, nil, rows })
  model():build { -1, nil, 2 }
  built():set_weights { rows, nil, rows }
  ds():batch(2):padded_batch(2, { padded_shapes = { -1, nil, 4 } })
  Dataset.zip({ ds(), ds() }):padded_batch(2, { padding_values = { 1, nil, 2 } })
  ds():padded_batch(2, { 1, nil, 2 })
  Dataset.from_generator(function() end, { output_types = { "float32", nil, "int32" } })
  Dataset.from_generator(function() end, { output_types = "float32", output_shapes = { 1, nil, 2 } })
  Dataset.from_generator(function() end, { output_signature = { flow.TensorSpec({ 1 }), nil, flow.TensorSpec({ 1 }) } })
  Dataset.from_generator(function() end, { output_types = "float32", args = { 1, nil, 2 } })
  flow.TensorSpec({ 1, nil, 2 })
  ds():bucket_by_sequence_length(function(v) return v end, { 2, nil, 4 }, { 1, 1, 1, 1 })
  ds():bucket_by_sequence_length(function(v) return v end, { 2, 3, 4 }, { 1, nil, 1, 1 })
  Dataset.sample_from_datasets({ ds(), ds(), ds() }, { weights = { 1, nil, 2 } })
  Dataset.sample_from_datasets({ ds(), nil, ds() })
  Dataset.choose_from_datasets({ ds(), nil, ds() }, ds())
  ds():rejection_resample(function(v) return v end, { 0.5, nil, 0.5 })
  ds():rejection_resample(function(v) return v end, { 0.5, 0, 0.5 }, { initial_dist = { 0.5, nil, 0.5 } })
  ds():rebatch({ 2, nil, 3 })
  D.TFRecordDataset({ "a", nil, "b" })
  D.TextLineDataset({ "a", nil, "b" })
  D.load_csv("x", { columns = { "a", nil, "b" } })
  D.load_csv("x", { dtypes = { "a", nil, "b" } })
  D.parse_example { a = { "float32", { 2, nil, 3 } } }
  Dataset.list_files({ "a", nil, "b" })
  Dataset.from_tensor_slices({ { 1, 2 }, nil, { 3, 4 } })
  Dataset.from_tensors({ { 1, 2 }, nil, { 3, 4 } })
  Dataset.zip({ ds(), nil, ds() })
  ds():map(function(v) return { v, nil, v } end)
  flow.distribute.MirroredStrategy({ "CPU:0", nil, "CPU:1" })
  flow.distribute.MirroredStrategy { devices = { "CPU:0", nil, "CPU:1" } }
  flow.distribute.ClusterResolver { cluster = { worker = { "a:1", nil, "b:1" } }, task = { type = "worker", index = 0 } }
  flow.distribute.SimpleClusterResolver { worker = { "a:1", nil, "b:1" } }
  flow.distribute.cost { workers = { 1, nil, 2 } }
  flow.sum(x, { 1, nil, 2 })
  x:mean({ 1, nil, 2 })
  flow.transpose(x, { 1, nil, 2 })
  x:transpose({ 1, nil, 2 })
  x:reshape({ 1, nil, 24 })
  x:permute({ 1, nil, 2 })
  flow.expand_dims(x, { 1, nil, 2 })
  flow.squeeze(flow.ones { 1, 2, 1 }, { 1, nil, 3 })
  flow.roll(x, { 1, nil, 2 }, { 1, 2, 3 })
  flow.roll(x, { 1, 1, 2 }, { 1, nil, 3 })
  flow.flip(x, { 1, nil, 3 })
  flow.rot90(x, 1, { 1, nil, 3 })
  flow.tensordot(x, x, { { 1, nil, 2 }, { 1, 2, 3 } })
  flow.moveaxis(x, { 1, nil, 2 }, { 1, 2, 3 })
  flow.norm(x, 2, { 1, nil, 2 })
  flow.quantile(x, { 0.1, nil, 0.2 })
  flow.median(x, { 1, nil, 2 })
  flow.var(x, { 1, nil, 2 })
  flow.std(x, { 1, nil, 2 })
  flow.all(x, { 1, nil, 2 })
  flow.logsumexp(x, { 1, nil, 2 })
  flow.softmax(x, { 1, nil, 2 })
  flow.log_softmax(x, { 1, nil, 2 })
  flow.argmax(x, { 1, nil, 2 })
  flow.average(x, { 1, nil, 2 })
  flow.amax(x, { 1, nil, 2 })
  flow.moments(x, { 1, nil, 2 })
  flow.layer_normalization(x, nil, nil, { 1, nil, 2 })
  flow.rms_normalization(x, nil, { 1, nil, 2 })
  flow.normalize(x, { 1, nil, 2 })
  flow.l2_normalize(x, { 1, nil, 2 })
  flow.count_nonzero(x, { 1, nil, 2 })
  flow.split(x, { 1, nil, 2 }, 2)
  flow.pad(x, { { 1, 1 }, nil, { 1, 1 } })
  flow.tile(x, { 1, nil, 2 })
  flow.repeat_(x, { 1, nil, 2 }, 2)
  flow.stack({ x, nil, x })
  flow.concatenate({ x, nil, x })
  flow.meshgrid({ x, nil, x })
  flow.broadcast_to(x, { 1, nil, 2 })
  flow.take(x, { 1, nil, 2 }, 1)
  flow.slice(x, { 1, nil, 1 }, { 1, 1, 1 })
  flow.slice_update(x, { 1, nil, 1 }, flow.ones { 1, 1, 1 })
  flow.scatter({ { 1 }, nil, { 2 } }, { 1, 2, 3 }, { 4 })
  flow.scatter({ { 1 }, { 2 } }, { 1, 2 }, { 4, nil, 4 })
  flow.conv(image, flow.ones { 2, 2, 1, 1 }, { strides = { 1, nil, 1 } })
  flow.max_pool(image, { 2, nil, 2 })
  flow.max_pool(image, 2, { strides = { 2, nil, 2 } })
  flow.image.resize(image, { 2, nil, 2 })
  flow.image.random_crop(image, { 2, nil, 2 })
  flow.image.extract_patches(image, { 2, nil, 2 })
  flow.random.normal({ 2, nil, 2 })
  flow.random.uniform({ 2, nil, 2 })
  flow.zeros({ 2, nil, 2 })
  flow.full({ 2, nil, 2 }, 1)
  flow.zeros(2, nil, 2)
  flow.raw_op("sum", { x, nil, x })
  flow.raw_op("transpose", { x }, { axes = { 1, nil, 2 } })
  flow.switch(1, { function() end, nil, function() end })
  flow.while_loop(function() end, function() end, { x, nil, x })
  flow.vectorized_map(function(v) return v end, { x, nil, x })
  flow.scan(function(s, v) return s, v end, x, { x, nil, x })
  flow.map(function(v) return v end, { x, nil, x })
  flow.associative_scan(function(a, b) return a end, { x, nil, x })
  flow.einsum("ij,jk", { x, nil, x })
  flow.histogram(x, { 1, nil, 2 })
  flow.digitize(x, { 1, nil, 2 })
  flow.unravel_index(x, { 1, nil, 2 })
  flow.strings.join({ { "a" }, nil, { "b" } })
  flow.utils.pad_sequences({ { 1 }, nil, { 2 } })
  flow.utils.pad_sequences({ { 1, nil, 3 }, { 2 } })
  flow.utils.to_categorical({ 1, nil, 2 })
  flow.utils.split_dataset({ 1, nil, 2 }, 0.5)
  flow.plot.images(x, "a.png", { titles = { "a", nil, "b" } })
  flow.plot.images(x, "a.png", { class_names = { "a", nil, "b" } })
  flow.plot.histogram({ 1, nil, 2 }, "a.png")
  flow.Variable({ 1, nil, 2 })
  flow.segment_sum(x, { 1, nil, 2 })
]]

local L, input = flow.layers, flow.Input { 2 }
local function model() return flow.Sequential { L.Dense(1) } end
local environment = setmetatable({
  flow = flow, L = L, D = flow.data, Dataset = flow.data.Dataset, M = flow.metrics, S = flow.optimizers.schedules,
  x = flow.ones { 2, 3, 4 }, image = flow.ones { 1, 4, 4, 1 }, rows = flow.ones { 2, 2 }, input = input, model = model,
  ds = function() return flow.data.Dataset.range(8) end,
  built = function()
    local made = model()
    made:build { -1, 2 }
    return made
  end,
  trained = function()
    local made = model()
    made:compile { optimizer = "sgd", loss = "mse" }
    return made
  end,
}, { __index = _G })

-- Examples of the reference whose lists may lack an entry: what their functions say of nil, and lists that no function of flow is given.
local MAY_LACK = {
  ["flow.clip_by_global_norm"] = "a gradient of what is not connected is nil", ["flow.global_norm"] = "the same",
  ["layer:compute_output_shape"] = "nil is a size that is not known", ["flow.utils.unpack_x_y_sample_weight"] = "{ x, nil, weights }: no y",
  ["flow.timeseries_dataset_from_array"] = "{ 4, nil, 10 } is a range to the end by steps of 10",
  ["flow.keras.tree.flatten"] = "a tree has keys, of which none need follow the other", ["flow.keras.tree.flatten_with_path"] = "the same",
  ["flow.keras.tree.map_structure_up_to"] = "the same", ["flow.keras.tree.pack_sequence_as"] = "the same",
  ["flow.keras.tree.traverse"] = "the same", ["flow.cond"] = "the branch is not taken", ["callback:set_state"] = "a state of the user's",
  ["flow.audio_dataset_from_directory"] = "a loop of the example", ["flow.image_dataset_from_directory"] = "the same",
  ["flow.text_dataset_from_directory"] = "the same", ["flow.repl"] = "lines that are typed",
}

describe("a list with a hole", function()
  it("is refused by each argument of each layer's record that may be a list", function()
    local wrong, count = {}, 0
    for index = 0, C.flow_layer_class_count() - 1 do
      local name = ffi.string(C.flow_layer_class_name(index))
      for i = 0, C.flow_layer_class_argument_count(index) - 1 do
        local argument, kind = ffi.string(C.flow_layer_class_argument(index, i)), ffi.string(C.flow_layer_class_argument_type(index, i))
        for position, list in pairs(LISTS[kind] and { [2] = { 1, nil, 2 }, [1] = { nil, 2 }, [3] = { 1, 2, nil, 3 } } or {}) do
          local message = support.message_of(function() L[name] { [argument] = list } end)
          local wanted = ("%s: %s: entry %d of the list is nil"):format(name, argument, position)
          count = count + 1
          if not message:find(wanted, 1, true) then wrong[#wrong + 1] = wanted .. ": " .. message end
        end
      end
    end
    assert.is_true(count > 200, count)
    assert.equal("", table.concat(wrong, "\n"))
  end)

  it("is refused by functions, options and methods that take lists", function()
    local wrong, count = {}, 0
    for line in CALLS:gmatch "[^\n]+" do
      count = count + 1
      local call = setfenv(assert(loadstring("local result = " .. line, "=line")), environment)
      local ok, message = pcall(call)
      if ok then wrong[#wrong + 1] = line .. ": accepted"
      elseif not (message:find("2", 1, true) and message:find("is nil", 1, true)) then wrong[#wrong + 1] = line .. ": " .. message end
    end
    assert.is_true(count > 150, count)
    assert.equal("", table.concat(wrong, "\n"))
  end)

  it("is refused wherever the reference's examples have a list", function()
    local folder = support.folder()
    local lua = os.getenv("FLOW_SANITIZED") and support.command or "luajit"
    local output = support.run(("cd %s && %s %sspec/support/holes.lua"):format(folder, lua, support.root))
    os.execute("rm -rf " .. folder)
    local wrong = {}
    for name, list in output:gmatch "accepted (%S+): ([^\n]*)" do
      if not MAY_LACK[name] then wrong[#wrong + 1] = name .. " accepts " .. list end
    end
    assert.is_true(tonumber(output:match "(%d+) lists tried") > 1000, output)
    assert.equal("", table.concat(wrong, "\n"))
  end)
end)
