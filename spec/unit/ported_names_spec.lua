-- ported_names_spec.lua: what programs of Keras users write and other specs do not: names of functions, __call__, positions as tensors.
require "spec.support.init"
local flow = require "flow"
local support = require "spec.support.init"
local message_of = support.message_of
local layers = flow.layers

flow.log.sink = function() end
local x, y = flow.random.normal({ 8, 3 }, { seed = 1 }), flow.random.normal({ 8, 2 }, { seed = 2 })

local function all(dataset)
  local list = {}
  for value in dataset:iter() do list[#list + 1] = value:totable() end
  return list
end

describe("functions given to compile", function()
  local function my_loss(y_true, y_pred) return (y_true - y_pred):square():mean() end
  local largest = function(y_true, y_pred) return (y_true - y_pred):abs():max() end
  local own = {}
  function own.distance(y_true, y_pred) return (y_true - y_pred):abs():mean() end

  local function trained(metrics)
    local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
    model:compile { optimizer = "sgd", loss = my_loss, metrics = metrics }
    model:fit(x, y, { verbose = 0 })
    return model
  end

  it("are reported by the names that they have in the script", function()
    local results = trained({ largest, own.distance, function(a, b) return (a - b):mean() end }):evaluate(x, y, { verbose = 0 })
    local names = {}
    for name in pairs(results) do names[#names + 1] = name end
    table.sort(names)
    assert.same({ "distance", "largest", "loss", "metric" }, names)
  end)

  it("are kept by these names, and read from custom_objects", function()
    local path, model = support.folder() .. "/own.keras", trained { largest }
    model:save(path)
    local again = flow.load_model(path, { custom_objects = { my_loss = my_loss, largest = largest } })
    assert.same(model:evaluate(x, y, { verbose = 0 }), again:evaluate(x, y, { verbose = 0 }))
    assert.is_false(pcall(function() return flow.load_model(path).optimizer end))      -- a warning: it is not compiled
    local unnamed = trained { (function() return function(a, b) return (a - b):mean() end end)() }
    assert.truthy(message_of(function() unnamed:save(path) end):find("has no name, by which a file holds it", 1, true))
  end)
end)

describe("return_dict = false", function()
  it("gives results as a list, in Keras' order", function()
    local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
    model:compile { optimizer = "sgd", loss = "mse", metrics = { "mse", "mae" } }
    local named = model:evaluate(x, y, { verbose = 0 })
    assert.same({ named.loss, named.mse, named.mae }, model:evaluate(x, y, { verbose = 0, return_dict = false }))
    assert.same({ named.loss, named.mse, named.mae }, model:test_on_batch(x, y, { return_dict = false }))
    model:compile { optimizer = "sgd", loss = "mse" }
    assert.equal(named.loss, model:evaluate(x, y, { verbose = 0, return_dict = false }))
    assert.equal(named.loss, model:train_on_batch(x, y, { return_dict = false }))
    local Own = flow.Model:extend "Own"
    function Own:call(values) return values end
    function Own:test_step() return { z = flow.tensor(1), b = flow.tensor(2), loss = flow.tensor(3) } end
    local own = Own()
    own:compile { loss = "mse" }
    assert.same({ 3, 2, 1 }, own:evaluate(x, x, { verbose = 0, return_dict = false }))
  end)
end)

describe("skipgrams", function()
  it("pairs near words, and as many random ones", function()
    local options = { vocabulary_size = 5, window_size = 2, negative_samples = 0, shuffle = false }
    local couples, labels = flow.utils.skipgrams({ 3, 0, 1, 2 }, options)
    assert.same({ { 3, 1 }, { 1, 3 }, { 1, 2 }, { 2, 1 } }, couples)      -- Keras gives these
    assert.same({ 1, 1, 1, 1 }, labels)
    for _, categorical in ipairs { false, true } do
      options = { negative_samples = 2, categorical = categorical, seed = 3 }
      couples, labels = flow.keras.preprocessing.sequence.skipgrams({ 1, 2, 3 }, 5, options)
      local near = 0
      assert.same({ 18, 18 }, { #couples, #labels })
      for i, couple in ipairs(couples) do
        assert.truthy(couple[1] >= 1 and couple[1] <= 3 and couple[2] >= 1 and couple[2] <= 4)
        near = near + (categorical and labels[i][2] or labels[i])
      end
      assert.equal(6, near)
    end
  end)
end)

describe("flow.linspace", function()
  it("takes ends that are tensors", function()
    assert.same({ 0, 1, 2 }, flow.linspace(flow.tensor(0), flow.log(flow.tensor(math.exp(2))):round(), 3):totable())
  end)
end)

describe("classes", function()
  it("are saved with what their constructors were given, without a get_config", function()
    local Tower = layers.Layer:extend "Tower"
    function Tower:init(units, rates, activation, options)
      layers.Layer.init(self, options)
      self.dense, self.second = layers.Dense(units[1]), layers.Dense(units[2], { activation = activation })
      self.rates = rates or { 0 }
    end
    function Tower:call(values) return self.second(self.dense(values)) end
    local path = support.folder() .. "/tower.keras"
    local model = flow.Sequential { layers.Input { 3 }, Tower({ 4, 2 }, nil, "relu", { name = "low" }),
      Tower { units = { 3, 2 }, activation = "tanh" } }
    assert.same({ 4, 2 }, model.layers[1]:get_config().units)
    model:save(path)
    local again = flow.load_model(path, { custom_objects = { Tower = Tower } })
    assert.same(model:predict(x, { verbose = 0 }):totable(), again:predict(x, { verbose = 0 }):totable())
    assert.equal("low", again.layers[1].name)
  end)

  it("may call call() __call__, as Keras does", function()
    local Warmup = flow.optimizers.schedules.LearningRateSchedule:extend "Warmup"
    function Warmup:init(steps) self.steps = steps end
    function Warmup:__call__(step) return flow.minimum(flow.cast(step, "float32") / self.steps, 1) end
    assert.truthy(math.abs(Warmup(4)(2) - 0.5) < 1e-6)
    local Sum = flow.regularizers.Regularizer:extend "Sum"
    function Sum:__call__(w) return w:sum() end
    assert.equal(3, Sum()(flow.tensor { 1, 2 }):item())
    local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2, { kernel_regularizer = Sum() }) }
    model:compile { optimizer = flow.optimizers.SGD(Warmup(4)), loss = "mse" }
    model:fit(x, y, { verbose = 0 })
    assert.equal(1, #model.losses)
  end)
end)

describe("flow.slice", function()
  it("takes positions that are tensors, and moves blocks into the tensor where they are not known", function()
    local t = flow.arange(12):reshape { 3, 4 }
    assert.same({ { 5, 6 }, { 9, 10 } }, flow.slice(t, { flow.tensor(2, { dtype = "int32" }), 2 }, { 2, 2 }):totable())
    local cut = flow.fn(function(values, row, column) return flow.slice(values, { row, column }, { 2, 2 }) end)
    assert.same({ { 5, 6 }, { 9, 10 } }, cut(t, flow.tensor(2, { dtype = "int32" }), flow.tensor(2, { dtype = "int32" })):totable())
    assert.same({ { 6, 7 }, { 10, 11 } }, cut(t, flow.tensor(3, { dtype = "int32" }), flow.tensor(9, { dtype = "int32" })):totable())
    local whole = flow.fn(function(values, at) return flow.slice(values, at, { 1, 2 }) end)
    assert.same({ { 1, 2 } }, whole(t, flow.tensor({ 1, 2 }, { dtype = "int32" })):totable())
  end)
end)

describe("functions in ds:map that look at values", function()
  it("read pictures by their names, and cut them at random places", function()
    local path, picture = support.folder() .. "/a.png", flow.random.uniform({ 9, 7, 3 }, { maxval = 255, seed = 3 }):to "uint8"
    flow.image.save(path, picture)
    local names = flow.data.Dataset.from_tensor_slices { { path, path, path }, { 1, 2, 3 } }
    local pictures = names:map(function(name, label)
      local read = flow.image.decode_png(flow.io.read_file(name), { channels = 3 })
      return flow.image.convert_image_dtype(read, "float32"), label
    end)
    local count = 0
    for x1, label in pictures:iter() do
      count = count + 1
      assert.equal(count, label:item())
      assert.truthy((x1 * 255 - picture):abs():max():item() < 1e-4)
    end
    assert.equal(3, count)
    local crops = pictures:map(function(x1, label)
      local top = flow.random.randint({}, 1, x1.shape[1] - 3)
      return flow.slice(x1, { top, 1, 1 }, { 4, 4, 3 }), label
    end):batch(3)
    for x1 in crops:iter() do assert.same({ 3, 4, 4, 3 }, x1.shape) end
    local masks = names:map(function(name) return flow.image.resize(flow.image.decode_png(flow.io.read_file(name)), { 3, 3 },
      { method = "nearest" }) end)
    for mask in masks:iter() do
      assert.equal("uint8", mask.dtype)
      assert.same(picture[{ 2, 2 }]:totable(), mask[{ 1, 1 }]:totable())
    end
    assert.equal("float32", flow.image.convert_image_dtype(flow.ones { 2, 2, 1 }, "float32").dtype)
    assert.same({ 0, 127, 255 }, flow.image.convert_image_dtype(flow.tensor { 0, 0.5, 1 }, "uint8", true):totable())
  end)

  it("give strings of any length, and say that results which had one size have another one", function()
    local ds = flow.data.Dataset.from_generator(function()
      local i = 0
      return function()
        i = i + 1
        if i <= 12 then return ("word "):rep(i < 10 and 2 or 3) end
      end
    end, { output_signature = { { shape = {}, dtype = "string" } } })
    local words = ds:map(function(text) return flow.strings.split(text) end)
    assert.same({ { shape = { 2 }, dtype = "string" } }, words.element_spec)
    local text = message_of(function() all(words) end)
    assert.truthy(text:find("result 1 of the function is string {3}; of the elements before it was string {2}", 1, true), text)
    assert.equal(12, #all(ds:map(function(line) return flow.strings.length(line) end)))
    local varied = flow.data.Dataset.from_tensor_slices { "a", "b c", "d e f g" }:map(function(line) return flow.strings.split(line) end)
    assert.same({ { shape = { -1 }, dtype = "string" } }, varied.element_spec)
    assert.same({ { "a" }, { "b", "c" }, { "d", "e", "f", "g" } }, all(varied))
  end)
end)

describe("names of TensorFlow", function()
  local picture = flow.arange(9):reshape { 3, 3, 1 }

  it("are choices with several results", function()
    local f = flow.fn(function(t) return flow.cond(t:sum():gt(0), function() return t, t * 2 end, function() return -t, t * 3 end) end)
    for _, sign in ipairs { 1, -1 } do
      local a, b = f(flow.tensor { sign })
      assert.same({ 1, sign == 1 and 2 or -3 }, { a:item(), b:item() })
    end
    assert.truthy(message_of(function()
      flow.fn(function(t) return flow.cond(t:sum():gt(0), function() return t, t end, function() return t end) end)(flow.ones { 2 })
    end):find("one function returns 2 values, the other 1", 1, true))
  end)

  it("are quarter turns by a tensor", function()
    local turn = flow.fn(function(image, k) return flow.image.rot90(image, k) end)
    for k = -1, 5 do
      local expected, by = flow.image.rot90(picture, k):totable(), flow.tensor(k, { dtype = "int32" })
      assert.same(expected, turn(picture, by):totable())
      assert.same(expected, flow.image.rot90(picture, by):totable())
    end
    assert.truthy(message_of(function() turn(flow.zeros { 2, 3, 1 }, flow.tensor(1)) end):find("needs square ones", 1, true))
  end)

  it("are sizes that keep the ratio of a picture", function()
    -- tf.image.resize(tf.ones((h, w, 1)), size, preserve_aspect_ratio=True).shape
    for _, case in ipairs { { 20, 91, 32, 128, 28, 128 }, { 5, 10, 25, 25, 12, 25 }, { 7, 3, 9, 11, 9, 4 }, { 3, 4, 2, 2, 2, 2 } } do
      local h, w = unpack(case)
      local resized = flow.image.resize(flow.ones { h, w, 1 }, { case[3], case[4] }, { preserve_aspect_ratio = true })
      assert.same({ case[5], case[6], 1 }, { unpack(resized.shape) })
    end
    local nearest = flow.image.resize(picture, { 6, 9 }, { method = "nearest", preserve_aspect_ratio = true })
    assert.same({ 6, 6, 1 }, { unpack(nearest.shape) })
  end)

  it("have add_n, of tensors, variables and symbolic tensors of one shape and dtype", function()
    local pair = flow.tensor { 1, 2 }
    assert.same({ 4, 6 }, flow.add_n({ pair, flow.Variable { 2, 2 }, flow.tensor { 1, 2 } }):totable())
    assert.same({ 1, 2 }, flow.math.add_n({ pair }):totable())
    assert.same({ 2, 4 }, flow.fn(function(list) return flow.add_n(list) end)({ pair, pair }):totable())
    local inputs = { flow.Input { 2 }, flow.Input { 2 } }
    local model = flow.Model { inputs = inputs, outputs = flow.add_n(inputs) }
    assert.same({ { 2, 2 } }, model:predict({ flow.ones { 1, 2 }, flow.ones { 1, 2 } }, { verbose = 0 }):totable())
    for _, case in ipairs { { {}, "the list is empty" }, { { pair, flow.ones { 3 } }, "number 2 is float32 {3}" },
      { { pair, flow.ones({ 2 }, { dtype = "int32" }) }, "the first one is float32 {2}, number 2 is int32 {2}" },
      { { pair, nil, pair }, "entry 2 of the list is nil" } } do
      local message = message_of(function() flow.add_n(case[1]) end)
      assert.truthy(message:find(case[2], 1, true), message)
    end
  end)

  it("are clip_by_norm, global_norm and clip_by_global_norm, with the values of TensorFlow", function()
    local a, b = flow.tensor { 3, 4 }, flow.Variable { 1, 2 }
    local clipped, norm = flow.clip_by_global_norm({ a, false, b }, 2.5)
    assert.is_true(math.abs(norm:item() - 5.4772) < 1e-4)
    assert.is_true((clipped[1] - flow.tensor { 1.3693, 1.8257 }):abs():max():item() < 1e-4)
    assert.is_false(clipped[2])
    assert.is_true((clipped[3] - flow.tensor { 0.45644, 0.91287 }):abs():max():item() < 1e-4)
    assert.same({ 3, 4 }, flow.clip_by_global_norm({ a, b }, 9)[1]:totable())
    local broken = flow.clip_by_global_norm({ a, flow.tensor { math.huge } }, 1)
    assert.is_true(flow.isnan(broken[1]):all():item())
    local rows = flow.clip_by_norm(flow.tensor { { 3, 4 }, { 0, 1 } }, 1, 2)
    assert.is_true((rows - flow.tensor { { 0.6, 0.8 }, { 0, 1 } }):abs():max():item() < 1e-6)
    assert.same({ 0, 0 }, flow.clip_by_norm(flow.zeros { 2 }, 1):totable())
    local step = flow.fn(function(factor)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return (b * b * factor):sum() end)
      return flow.clip_by_global_norm(tape:gradient(loss, { b }), 1)[1]
    end)
    assert.is_true((step(flow.tensor(2)) - flow.tensor { 0.44721, 0.89443 }):abs():max():item() < 1e-4)
  end)

  it("are l2_normalize, also in flow.nn and flow.math", function()
    for _, normalize in ipairs { flow.l2_normalize, flow.nn.l2_normalize, flow.math.l2_normalize } do
      assert.near(0.8, normalize({ 3, 4 })[2]:item(), 1e-6)
      assert.same({ { 1, 1 }, { 0, 0 } }, normalize({ { 3, 4 }, { 0, 0 } }, { axis = 1 }):totable())
    end
  end)

  it("are places of strings", function()
    local t = flow.tensor { { "a", "b", "c" }, { "d", "e", "f" } }
    assert.same({ "c", "f" }, t[{ {}, -1 }]:totable())
    assert.same({ { "a", "b" }, { "d", "e" } }, t[{ {}, { 1, -2 } }]:totable())
    assert.same({ "d", "e", "f" }, t[{ 2, {} }]:totable())
    assert.equal("e", t[{ 2, 2 }])
    assert.same({ "b", "e" }, t[{ "...", 2 }]:totable())
    assert.same({ 2, 3, 1 }, { unpack(t[{ {}, {}, false }].shape) })
    assert.truthy(message_of(function() return t[{ 1, 4 }] end):find("positions 4 to 4 are not among 3 strings", 1, true))
    assert.truthy(message_of(function() return t[{ 1, 1, 1 }] end):find("more axes than it has", 1, true))
    assert.truthy(message_of(function() return t[{ {}, { 1, 3, 2 } }] end):find("positions and ranges", 1, true))
  end)

  it("are a new axis by itself", function()
    assert.same({ 1, 3, 3, 1 }, { unpack(picture[flow.newaxis].shape) })
  end)

  it("are numbers that a layer of one's own is called with, by position", function()
    local Flat = layers.Layer:extend "Flat"
    function Flat:call(t, height, width, scale) return flow.reshape(t, { -1, height * width }) * (scale or 1) end
    local input = flow.Input { 3, 4 }
    local model = flow.Model(input, Flat()(input, 3, 4, 2))
    assert.equal(24, model:predict(flow.ones { 1, 3, 4 }, { verbose = 0 }):sum():item())
    assert.equal(12, Flat()(flow.ones { 1, 3, 4 }, 3, 4):sum():item())
  end)

  it("are defaults of training in call(), also where a model is made", function()
    local Doubled = layers.Layer:extend "Doubled"
    function Doubled:call(t, training)
      if training == nil then training = true end
      return training and flow.concatenate({ t, t }, { axis = -1 }) or t
    end
    local input = flow.Input { 3 }
    local output = Doubled()(input)
    assert.equal(6, output.shape[2])
    assert.equal(3, Doubled()(input, { training = false }).shape[2])
    local model = flow.Model(input, output)
    assert.equal(6, model(flow.ones { 2, 3 }).shape[2])
    assert.equal(3, model(flow.ones { 2, 3 }, { training = false }).shape[2])
  end)

  it("are windows of a series and what comes after them, of which no stage says how long they are", function()
    -- tf.data.Dataset.range(10).window(5, 2, drop_remainder=True).flat_map(lambda w: w.batch(5)).map(lambda w: (w[:-1], w[-1])).batch(2)
    local windows = flow.data.Dataset.range(10):window(5, { shift = 2, drop_remainder = true })
      :flat_map(function(window) return window:batch(5) end)
    local found = {}
    for before, after in windows:map(function(w) return w[{ { 1, -2 } }], w[-1] end):batch(2):iter() do
      found[#found + 1] = { before:totable(), after:totable() }
    end
    assert.same({ { { { 0, 1, 2, 3 }, { 2, 3, 4, 5 } }, { 4, 6 } }, { { { 4, 5, 6, 7 } }, { 8 } } }, found)
    assert.truthy(message_of(function() windows:map(function(w) return w[{ 1, 2, 3 }] end) end):find("map", 1, true))
  end)

  it("are args of strategy:run", function()
    for _, strategy in ipairs { flow.distribute.get_strategy(), flow.distribute.MirroredStrategy { "cpu:0" } } do
      local sum = strategy:run(function(a, b) return a + b end, { args = { flow.ones { 2 }, flow.ones { 2 } } })
      assert.same({ 2, 2 }, sum:totable())
      assert.same({ 2, 2 }, strategy:reduce("SUM", sum, { axis = false }):totable())
    end
  end)

  it("are the objects of a checkpoint, by their names", function()
    local checkpoint = flow.train.Checkpoint { step = flow.Variable(0), net = flow.Sequential { layers.Input { 2 }, layers.Dense(1) } }
    checkpoint.step:assign_add(1)
    assert.equal(1, checkpoint.step:item())
    assert.equal(2, #checkpoint.net.weights)
    assert.truthy(message_of(function() return checkpoint.stp end):find('no field "stp"; did you mean "step"?', 1, true))
  end)

  it("are checks of shapes", function()
    local t = flow.ones { 2, 3 }
    t:set_shape { false, 3 }
    assert.equal(2, flow.ensure_shape(t, { 2, -1 }).shape[1])
    assert.truthy(message_of(function() t:set_shape { 2, 4 } end):find("the shape is {2, 3}, expected {2, 4}", 1, true))
    assert.truthy(message_of(function() t:ensure_shape { 2 } end):find("expected {2}", 1, true))
    local ds = flow.data.Dataset.from_tensor_slices(t):batch(2):map(function(rows)
      rows:set_shape { false, 3 }
      return rows * 2
    end)
    assert.same({ { { 2, 2, 2 }, { 2, 2, 2 } } }, all(ds))
  end)
end)

describe("a model that is made of a list", function()
  it("has a list as input and output, also of one tensor", function()
    local input = flow.Input { 3 }
    local output = layers.Dense(2)(input)
    local model = flow.Model { inputs = { input }, outputs = { output } }
    assert.equal(input, model.input[1])
    assert.equal(output, model.output[1])
    local plain = flow.Model { inputs = input, outputs = output }
    assert.equal(input, plain.input)
    assert.equal(output, plain.output)
  end)
end)

describe("other names of Keras", function()
  it("are those of initializers and regularizers, in arguments, add_weight and get", function()
    for name, class_name in pairs { normal = "RandomNormal", uniform = "RandomUniform", one = "Ones", zero = "Zeros",
                                    IdentityInitializer = "Identity", OrthogonalInitializer = "Orthogonal" } do
      local dense = layers.Dense(3, { kernel_initializer = name })
      dense:build { -1, 3 }
      assert.equal(class_name, dense:get_config().kernel_initializer.class_name)
      assert.equal(class_name, flow.initializers.get(name).class_name)
      local Own = layers.Layer:extend "Own"
      function Own:build() self.w = self:add_weight { shape = { 2, 2 }, initializer = name } end
      Own():build { -1, 2 }
    end
    assert.equal("L1L2", flow.regularizers.get("l1l2").class_name)
    assert.equal("L1L2", layers.Dense(2, { kernel_regularizer = "l1l2" }):get_config().kernel_regularizer.class_name)
  end)
end)
