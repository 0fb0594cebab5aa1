-- keras_helpers_spec.lua: helpers of keras.utils: pictures, custom objects, batches made by a class in Lua, files of Keras' cache.
local support = require "spec.support.init"
local flow = require "flow"

local layers, utils, message_of = flow.layers, flow.utils, support.message_of

local path
before_each(function() path = support.folder() end)
after_each(function() flow.io.rmtree(path) end)

describe("pictures", function()
  it("become numbers and files", function()
    local x = flow.tensor { { { 0 }, { 1 } }, { { 2 }, { 4 } } }
    assert.same({ { { 0 }, { 63 } }, { { 127 }, { 255 } } }, utils.array_to_img(x):totable())      -- as NumPy's astype cuts off
    assert.same({ { { 0 }, { 1 } }, { { 2 }, { 4 } } }, utils.array_to_img(x, { scale = false }):totable())
    assert.same({ 2, 2, 1 }, { unpack(utils.img_to_array(x:squeeze(-1)).shape) })
    assert.same({ 1, 2, 2 }, { unpack(utils.img_to_array(x, { data_format = "channels_first" }).shape) })
    local picture = (flow.arange(0, 48):reshape { 4, 4, 3 } * 5):to "uint8"
    utils.save_img(path .. "/a.png", picture, { scale = false })
    assert.same(picture:totable(), utils.load_img(path .. "/a.png"):totable())
    local small = utils.load_img(path .. "/a.png", { target_size = { 2, 2 } })
    assert.same(picture[{ { 2, 2 }, { 2, 2 } }]:totable(), small[{ { 1, 1 }, { 1, 1 } }]:totable())
    assert.same({ 2, 3, 1 }, { unpack(utils.load_img(path .. "/a.png", "grayscale", { 2, 3 }, "bilinear", true).shape) })
    assert.same({ 1, 2, 2, 3 }, { unpack(utils.smart_resize(flow.zeros { 1, 4, 8, 3 }, { 2, 2 }).shape) })
    local pictures = flow.random.uniform({ 1, 4, 8, 3 }, { seed = 1 })
    local first = utils.smart_resize(flow.moveaxis(pictures, -1, 2), { 2, 3 }, { data_format = "channels_first" })
    assert.same(flow.moveaxis(utils.smart_resize(pictures, { 2, 3 }), -1, 2):totable(), first:totable())
    utils.save_img(path .. "/b.jpg", flow.random.uniform { 4, 4, 4 })
    assert.same({ 4, 4, 3 }, { unpack(utils.load_img(path .. "/b.jpg").shape) })
    assert.matches("1, 3 or 4 channels, got 2", message_of(function() utils.array_to_img(flow.zeros { 2, 2, 2 }) end))
    assert.matches("ends with \"png\", file_format is \"jpeg\"", message_of(function()
      utils.save_img(path .. "/a.png", picture, { file_format = "jpeg" })
    end))
  end)
end)

describe("custom objects", function()
  local function new_class(name)
    local class = layers.Layer:extend(name)
    function class:call(x) return x * 3 end
    function class.get_config() return {} end
    return class
  end

  it("are found in files by the names that they were registered with", function()
    local Triple = utils.register_keras_serializable("mine", "Threefold")(new_class "Triple")
    local model = flow.Sequential { layers.Input { 2 }, Triple() }
    model:save(path .. "/a.keras")
    assert.truthy(model:to_json():find("mine>Threefold", 1, true))
    assert.same({ { 3, 6 } }, flow.load_model(path .. "/a.keras"):predict(flow.tensor { { 1, 2 } }, { verbose = 0 }):totable())
    assert.equal(Triple, utils.get_registered_object "mine>Threefold")
    assert.equal("mine>Threefold", utils.get_registered_name(Triple))
    local Plain = utils.register_keras_serializable(new_class "Plain")
    assert.equal("Custom>Plain", utils.get_registered_name(Plain))
    assert.equal("own>Plain", utils.get_registered_name(utils.register_keras_serializable { package = "own" }(new_class "Plain")))
    assert.equal(Triple, flow.keras.saving.get_custom_objects()["mine>Threefold"])
  end)

  it("are found within a scope, and not after it", function()
    local Other = new_class "OtherTriple"
    flow.Sequential { layers.Input { 1 }, Other() }:save(path .. "/b.keras")
    assert.matches("OtherTriple", message_of(function() flow.load_model(path .. "/b.keras") end))
    local model = utils.custom_object_scope({ OtherTriple = Other }, function()
      return utils.custom_object_scope({ More = Other }, function() return flow.load_model(path .. "/b.keras") end)
    end)
    assert.equal(6, model(flow.tensor { { 2 } }):item())
    assert.matches("no scope", message_of(function() utils.custom_object_scope({}, function() error "no scope" end) end))
    assert.matches("OtherTriple", message_of(function() flow.load_model(path .. "/b.keras") end))
  end)
end)

describe("PyDataset", function()
  local seen, epochs
  local Batches = utils.PyDataset:extend "Batches"
  function Batches:init(count) self.count = count end
  function Batches:__len__() return self.count end
  function Batches:__getitem__(index)
    seen[#seen + 1] = index
    local rows = index == self.count - 1 and 1 or 2
    return flow.full({ rows, 1 }, index), flow.full({ rows, 1 }, 2 * index)
  end
  function Batches:on_epoch_end() epochs = epochs + 1 end      -- luacheck: ignore self

  it("feeds fit, evaluate and predict", function()
    seen, epochs = {}, 0
    local model = flow.Sequential { layers.Input { 1 }, layers.Dense(1, { kernel_initializer = "ones" }) }
    model:compile { loss = "mse", optimizer = flow.optimizers.SGD(0) }
    local history = model:fit(Batches(4), { epochs = 2, verbose = 0, shuffle = false, validation_data = Batches(2) })
    assert.near((2 * 0 + 2 * 1 + 2 * 4 + 1 * 9) / 7, history.history.loss[1], 1e-6)
    assert.near(1 / 3, history.history.val_loss[1], 1e-6)
    assert.is_true(epochs >= 4)
    assert.near(19 / 7, model:evaluate(Batches(4), { verbose = 0 }).loss, 1e-6)
    assert.same({ { 0 }, { 0 }, { 1 }, { 1 }, { 2 } }, model:predict(Batches(3), { verbose = 0 }):totable())
    assert.near(19 / 7, model:fit(Batches(4), { verbose = 0 }).history.loss[1], 1e-6)
    assert.matches("__len__%(%) returned the number 0", message_of(function() model:fit(Batches(0)) end))
    assert.matches("no method __len__", message_of(function() model:fit(utils.Sequence:extend "None"()) end))
  end)
end)

describe("files of Keras' cache", function()
  it("are found where they are, and nothing is downloaded", function()
    flow.io.makedirs(path .. "/datasets/pack")
    flow.io.write(path .. "/datasets/a.txt", "a")
    assert.equal(path .. "/datasets/a.txt", utils.get_file("a.txt", "https://example.org/a.txt", { cache_dir = path }))
    assert.equal(path .. "/datasets/a.txt", utils.get_file { origin = "https://example.org/a.txt", cache_dir = path })
    assert.equal(path .. "/datasets/pack", utils.get_file("pack.tar.gz", "https://example.org/b", { cache_dir = path, extract = true }))
    assert.matches("datasets/b.txt does not exist, and nothing is downloaded: get it from https://example.org/b.txt", message_of(function()
      utils.get_file("b.txt", "https://example.org/b.txt", { cache_dir = path })
    end))
  end)

  it("have the digest that was given", function()
    flow.io.makedirs(path .. "/datasets")
    flow.io.write(path .. "/datasets/abc.txt", "abc")
    local function get(options)
      options.cache_dir = path
      return utils.get_file("abc.txt", nil, options)
    end
    local sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"      -- FIPS 180-4 and RFC 1321 have these
    local md5 = "900150983cd24fb0d6963f7d28e17f72"
    for _, options in ipairs { { file_hash = sha256 }, { file_hash = sha256:upper(), hash_algorithm = "sha256" }, { file_hash = md5 },
        { md5_hash = md5 } } do
      assert.equal(path .. "/datasets/abc.txt", get(options))
    end
    flow.io.write(path .. "/datasets/abc.txt", ("a"):rep(119))
    assert.matches("has the md5 digest 8a7bd0732ed6a28ce75f6dabc90e1613, expected " .. md5 .. ": it is another file, or damaged",
      message_of(function() get { file_hash = md5 } end))
    assert.matches('file_hash is 64 hexadecimal digits of sha256 or 32 of md5, got "12"',
      message_of(function() get { file_hash = "12" } end))
  end)
end)

describe("flow.utils", function()
  it("names a word that is not a position in the tables of skipgrams, and an object whose name is not a string", function()
    local skipgrams = flow.utils.skipgrams
    assert.equal("flow.utils.skipgrams: word 2 is the number 5, expected a whole number from 0 to 1, which sampling_table has",
      message_of(function() skipgrams({ 1, 5 }, 6, { sampling_table = { 1, 1 } }) end))
    assert.equal('flow.utils.skipgrams: word 1 is the string "a", expected a whole number from 0',
      message_of(function() skipgrams({ "a" }, 6) end))
    assert.equal("register_keras_serializable: name is a string, got a table",
      message_of(function() flow.utils.register_keras_serializable("p", {})(function() end) end))
  end)
end)

describe("layers with a vocabulary", function()
  it("keep it in a folder", function()
    local text = layers.TextVectorization { split = "character", ngrams = 2 }
    text:adapt { "abc", "ab" }
    text:save_assets(path .. "/text")
    local again = layers.TextVectorization { split = "character", ngrams = 2 }
    again:load_assets(path .. "/text")
    assert.same(text:get_vocabulary(), again:get_vocabulary())
    assert.same(text { "abd" }:totable(), again { "abd" }:totable())
    local lookup = layers.StringLookup()
    lookup:adapt { "y", "y", "x" }
    lookup:save_assets(path .. "/lookup")
    local other = layers.StringLookup()
    other:load_assets(path .. "/lookup")
    assert.same({ 1, 0 }, other { "y", "z" }:totable())
  end)
end)

describe("keras.distribution", function()
  local distribution = flow.keras.distribution

  it("names strategies and devices", function()
    local found = distribution.list_devices "cpu"
    assert.same(flow.config.list_logical_devices "cpu", found)
    assert.equal(#found, distribution.get_device_count "CPU")
    assert.is_true(distribution.get_device_count() >= 1)
    local parallel = distribution.DataParallel { devices = { "cpu:0" } }
    assert.equal("MirroredStrategy", tostring(parallel):match "^%a+")
    assert.is_nil(distribution.distribution())
    local model = parallel.scope(function()
      assert.equal(parallel, distribution.distribution())
      return flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
    end)
    assert.equal(parallel, model.distribute_strategy)
    model:compile { optimizer = "sgd", loss = "mse" }
    assert.equal(1, #model:fit(flow.ones { 4, 2 }, flow.ones { 4, 1 }, { verbose = 0 }).history.loss)
    assert.equal(1, distribution.DataParallel({ auto_shard_dataset = false, devices = { "cpu:0" } }).num_replicas_in_sync)
  end)

  it("says what is done in place of the rest", function()
    distribution.set_distribution(nil)
    for text, f in pairs {
      ["distribution.scope(function() ... end)"] = function() distribution.set_distribution(distribution.DataParallel()) end,
      ["there are no meshes: give devices"] = function() distribution.DataParallel { device_mesh = {} } end,
      ["models are not cut over devices"] = function() return distribution.ModelParallel end,
      ["finds the other workers by TF_CONFIG"] = function() return distribution.initialize end,
    } do
      local message = message_of(f)
      assert.truthy(message:find(text, 1, true), message)
    end
  end)

  it("knows how probably a word is taken, and draws classes beside the true ones, as word2vec does", function()
    local list = flow.utils.make_sampling_table(10)
    for i, value in ipairs { 0.00315225, 0.00315225, 0.00547597, 0.00741556 } do assert.near(value, list[i], 1e-7) end
    assert.equal(10, #list)
    local random, classes = flow.random, flow.tensor({ { 3, 1 } }, { dtype = "int64" })
    local drawn, of_true, of_drawn = random.log_uniform_candidate_sampler { true_classes = classes, num_true = 2, num_sampled = 4,
      unique = false, range_max = 8, seed = 1, name = "negative_sampling" }
    assert.near(0.40622804, of_true[{ 1, 1 }]:item(), 1e-5)
    assert.near(0.73814046, of_true[{ 1, 2 }]:item(), 1e-5)
    assert.same({ 4, 4, "int64" }, { drawn.shape[1], of_drawn.shape[1], drawn.dtype })
    local all = random.log_uniform_candidate_sampler(classes, 2, 8, true, 8, 1):totable()
    table.sort(all)
    assert.same({ 0, 1, 2, 3, 4, 5, 6, 7 }, all)
    assert.same({ 0.5, 0.5 }, select(2, random.uniform_candidate_sampler(classes, 2, 4, false, 8))[1]:totable())
    local counts = {}
    for _, class in ipairs(random.log_uniform_candidate_sampler(classes, 2, 8000, false, 8, 3):totable()) do
      counts[class] = (counts[class] or 0) + 1
    end
    for class = 0, 7 do assert.near(math.log((class + 2) / (class + 1)) / math.log(9), counts[class] / 8000, 0.02) end
    assert.matches("num_sampled is 9, but there are only 8", message_of(function()
      return (random.uniform_candidate_sampler(classes, 2, 9, true, 8)) end))
    assert.matches("true_classes is {batch, num_true}, {batch, 1}", message_of(function()
      return (random.uniform_candidate_sampler(classes, 1, 2, true, 8)) end))
  end)
end)
