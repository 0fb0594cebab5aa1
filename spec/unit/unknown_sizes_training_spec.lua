-- unknown_sizes_training_spec.lua: batches of several sizes are trained on, by models that leave sizes open, that their first batch builds,
-- or that are inside of others.
local flow = require "flow"
local model_files = require "spec.support.model_files"
local support = require "spec.support.init"
local unknown = require "spec.support.unknown_sizes"
local layers, message_of = flow.layers, support.message_of
local image, image_model, pictures, with_sizes = unknown.image, unknown.image_model, unknown.pictures, unknown.with_sizes
local compiled, state_of, SIZES = unknown.compiled, unknown.state_of, unknown.SIZES

local QUIET = { verbose = 0 }

local function has(message, part)
  assert.truthy(message:find(part, 1, true), message)
end

describe("training on batches of several sizes", function()
  --- What train_on_batch gives where every size has its own model, which gets weights and the optimizer's state from the one before.
  local function by_models_of_one_size(model)
    local before, losses
    losses = {}
    for n, size in ipairs(SIZES) do
      local x = image(3, unpack(size))
      local fixed = compiled(with_sizes(model, { x }))
      if before then
        fixed.optimizer:build(fixed.trainable_variables)
        for i, value in ipairs(state_of(before)) do
          local own = i <= #fixed.variables and fixed.variables[i] or fixed.optimizer.variables[i - #fixed.variables]
          own:assign(value)
        end
      end
      losses[n] = fixed:train_on_batch(x, flow.ones { 3, 2 } * n).loss
      before = fixed
    end
    return before, losses
  end

  it("gives the bits of models of one size each, with weights and the optimizer's state handed on", function()
    local model = compiled(image_model { -1, -1, 3 })
    local expected, losses = by_models_of_one_size(model)
    local start = model:get_weights()
    for n, size in ipairs(SIZES) do
      assert.equal(losses[n], model:train_on_batch(image(3, unpack(size)), flow.ones { 3, 2 } * n).loss)
    end
    model_files.assert_same_bits(state_of(expected), state_of(model), "train_on_batch")
    local fitted = compiled(image_model { -1, -1, 3 })
    fitted:set_weights(start)
    fitted:fit(pictures(), QUIET)
    model_files.assert_same_bits(state_of(expected), state_of(fitted), "fit")
    assert.equal(#SIZES, fitted.optimizer.iterations)
  end)

  it("goes on: evaluate, predict, other sizes, more than a model keeps plans for", function()
    local model = compiled(image_model { -1, -1, 3 })
    local history = model:fit(pictures(), { verbose = 0, epochs = 3, validation_data = pictures() }).history
    assert.equal(3, #history.val_loss)
    local sum = 0
    for n, size in ipairs(SIZES) do sum = sum + model:evaluate(image(3, unpack(size)), flow.ones { 3, 2 } * n, QUIET).loss / #SIZES end
    assert.truthy(math.abs(model:evaluate(pictures(), QUIET).loss - sum) <= 1e-5 * sum)
    local rows = model:predict(pictures(), QUIET)
    for n, size in ipairs(SIZES) do
      model_files.assert_same_bits({ model:predict(image(3, unpack(size)), QUIET) }, { rows[{ { 3 * n - 2, 3 * n } }] }, "batch " .. n)
    end
    for size = 5, 20 do model:train_on_batch(image(2, size, size), flow.ones { 2, 2 }) end
    assert.equal(3 * #SIZES + 16, model.optimizer.iterations)
  end)

  it("agrees over replicas", function()
    flow.config.set_logical_devices("cpu", 4)
    local results = {}
    for _, devices in ipairs { { "cpu:0" }, { "cpu:0", "cpu:1" } } do
      local model
      flow.distribute.MirroredStrategy(devices).scope(function()
        local list = { layers.Input { -1, -1, 3 }, layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(2) }
        model = compiled(flow.Sequential(list))
      end)
      if results[1] then model:set_weights(results[1].start) end
      local start = model:get_weights()
      local history = model:fit(pictures(), { verbose = 0, epochs = 2 }).history
      results[#results + 1] = { start = start, loss = history.loss[2], evaluated = model:evaluate(pictures(), QUIET).loss,
                                predicted = model:predict(image(3, 11, 6), QUIET) }
    end
    local one, two = unpack(results)
    assert.truthy(math.abs(one.loss - two.loss) <= 1e-4 * one.loss, ("%g and %g"):format(one.loss, two.loss))
    assert.truthy(math.abs(one.evaluated - two.evaluated) <= 1e-3 * one.evaluated)
    assert.truthy((one.predicted - two.predicted):abs():max():item() <= 1e-3)
  end)

  it("takes texts of any length: Embedding, masks left to the user, batches padded to their longest", function()
    local words = flow.Input({ -1 }, { dtype = "int32" })
    local x = layers.GlobalAveragePooling1D()(layers.Embedding(20, 4)(words))
    local model = compiled(flow.Model { inputs = words, outputs = layers.Dense(1, { activation = "sigmoid" })(x) })
    local spec = { { shape = { -1 }, dtype = "int32" }, { shape = { 1 }, dtype = "float32" } }
    local texts = flow.data.Dataset.from_generator(function()
      local n = 0
      return function()
        n = n + 1
        if n <= 24 then return flow.tensor(n % 2 == 0 and 3 or 17):broadcast_to { 1 + n % 5 }:to "int32", flow.tensor { n % 2 } end
      end
    end, { output_signature = spec })
    local batches = texts:padded_batch(4)
    assert.same({ -1, -1 }, batches.element_spec[1].shape)
    local widths = {}
    for batch in batches:iter() do widths[#widths + 1] = batch.shape[2] end
    assert.same({ 5, 4, 5, 5, 5, 5 }, widths)
    local history = model:fit(batches, { verbose = 0, epochs = 30 }).history
    assert.truthy(history.loss[30] < history.loss[1] / 2, ("%g, %g"):format(history.loss[1], history.loss[30]))
    assert.same({ 2, 1 }, model:predict(flow.ones({ 2, 9 }, { dtype = "int32" }), QUIET).shape)
  end)
end)

---- models that are built by their first batch ----------------------------------------------------------------------------------------

describe("models that are built by their first batch", function()
  local function check(model)
    for _, size in ipairs { 8, 11 } do
      assert.same({ 2, 2 }, model(image(2, size, size)).shape)
      assert.same({ 2, 2 }, model:predict(image(2, size, size + 1), QUIET).shape)
    end
    compiled(model)
    assert.equal(2, #model:fit(pictures(), { verbose = 0, epochs = 2 }).epoch)
  end

  it("take other sizes afterwards, as in Keras: Sequential, also from its file and with an Input", function()
    local function list() return { layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(2) } end
    local model = flow.Sequential(list())
    check(model)
    assert.same({ -1, 8, 8, 3 }, model.input_shape)
    local file = support.file("sequential.keras", "")
    model:save(file)
    check(flow.load_model(file))
    assert.same({ 3, 2 }, flow.models.shared(file):predict(image(3, 12, 9)).shape)
    check(flow.Sequential { layers.Input { 6, 6, 3 }, unpack(list()) })
    local flat = flow.Sequential { layers.Flatten(), layers.Dense(2) }
    flat(image(2, 4, 4))
    has(message_of(function() flat(image(2, 4, 5)) end), "input {2, 60} has 60 features, but the layer was built for 48")
  end)

  it("take other sizes afterwards: classes written in Lua, also called on symbolic tensors", function()
    local Net = flow.Model:extend("Net")
    function Net:init() self.convolution, self.pool, self.dense = layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(2) end
    function Net:call(x) return self.dense(self.pool(self.convolution(x))) end
    check(Net())
    local model, input = Net(), flow.Input { -1, -1, 3 }
    assert.same({ -1, 2 }, model(input).shape)
    check(model)
  end)
end)

---- models inside ---------------------------------------------------------------------------------------------------------------------

describe("models inside of others", function()
  local file = support.file("model.keras", "")

  it("have unknown sizes: transfer learning, saved, loaded, trained on, in C", function()
    local input = flow.Input { -1, -1, 3 }
    local x = layers.Conv2D(4, 3, { strides = 2, activation = "relu" })(input)
    local base = flow.Model { inputs = input, outputs = layers.BatchNormalization()(layers.DepthwiseConv2D(3, { padding = "same" })(x)) }
    base:save(file)
    base = flow.load_model(file)
    base.trainable = false
    local frozen = base:get_weights()
    local model = compiled(flow.Sequential { base, layers.GlobalAveragePooling2D(), layers.Dense(2) })
    assert.same({ -1, -1, -1, 3 }, model.input_shape)
    model:fit(pictures(), QUIET)
    model_files.assert_same_bits(frozen, base:get_weights(), "what is frozen")
    model:save(file)
    local again = flow.load_model(file)
    again:fit(pictures(), QUIET)
    model:fit(pictures(), QUIET)
    model_files.assert_same_bits(state_of(model), state_of(again), "training goes on")
    for _, size in ipairs { 12, 17 } do model_files.assert_returns(again, { image(2, size, size) }) end
  end)

  it("may have known sizes where they are called with unknown ones, which must then be the same", function()
    local input = flow.Input { 9, 9, 3 }
    local fixed = flow.Model { inputs = input, outputs = layers.Dense(2)(layers.Flatten()(layers.Conv2D(4, 3)(input))) }
    local any = flow.Input { -1, -1, 3 }
    local model = flow.Model { inputs = any, outputs = fixed(layers.ReLU()(any)) }
    assert.same({ -1, 2 }, model.output_shape)
    assert.same({ 2, 2 }, model:predict(image(2, 9, 9), QUIET).shape)
    has(message_of(function() model:predict(image(2, 9, 8), QUIET) end), "has shape (2, 9, 8, 3), expected (None, 9, 9, 3)")
    has(message_of(function() fixed(flow.Input { -1, 8, 3 }) end), "expected (None, 9, 9, 3)")
  end)

  it("may be called with known sizes where their own are not", function()
    local input = flow.Input { -1, -1, 3 }
    local base = flow.Model { inputs = input, outputs = layers.Conv2D(4, 3, { strides = 2 })(input) }
    local known = flow.Input { 9, 9, 3 }
    local features = base(known)
    assert.same({ -1, 4, 4, 4 }, features.shape)
    local model = flow.Model { inputs = known, outputs = layers.Dense(2)(layers.Flatten()(features)) }
    model_files.assert_returns(model, { image(2, 9, 9) })
  end)

  it("join again what they divided: a U-Net of several depths", function()
    for depth = 1, 8 do
      local input, skips = flow.Input { -1, -1, 3 }, {}
      local x = input
      for level = 1, depth do
        skips[level] = layers.Conv2D(2, 3, { padding = "same" })(x)
        x = layers.MaxPooling2D()(skips[level])
      end
      for level = depth, 1, -1 do x = layers.Concatenate()({ skips[level], layers.Conv2DTranspose(2, 2, { strides = 2 })(x) }) end
      local net = flow.Model { inputs = input, outputs = layers.Conv2D(1, 1)(x) }
      assert.same({ -1, -1, -1, 1 }, net.output_shape)
      local outside = flow.Input { -1, -1, 3 }
      local model = flow.Model { inputs = outside, outputs = net(outside) }
      model_files.assert_returns(model, { image(1, 2 ^ depth, depth < 6 and 2 * 2 ^ depth or 2 ^ depth) })
    end
  end)
end)

describe("several states and threads", function()
  it("share a model of unknown sizes", function()
    local file = support.file("shared.keras", "")
    local model = image_model { -1, -1, 3 }
    model:save(file)
    local shared = flow.models.shared(file)
    for size = 5, 20 do
      model_files.assert_same_bits({ model:predict(image(2, size, size), QUIET) }, { shared:predict(image(2, size, size)) }, size)
    end
    has(message_of(function() shared:predict(flow.ones { 2, 8, 8, 4 }) end), "expected {None, None, None, 3}")
  end)
end)

describe("a training that goes on", function()
  it("makes the variables of a model before its first batch tells it a size", function()
    local Net = flow.Model:extend("Net")
    function Net:init() self.convolution, self.pool, self.dense = layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(2) end
    function Net:call(x) return self.dense(self.pool(self.convolution(x))) end
    local makers = { Net, function()
      return flow.Sequential { layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(2) }
    end }
    for _, make in ipairs(makers) do
      local folder, results = support.folder(), {}
      --- stops: number of the batch after which this run is given up.
      local function run(stops, callbacks)
        flow.set_random_seed(4)
        local model = compiled(make())
        callbacks[#callbacks + 1] = flow.callbacks.LambdaCallback { on_train_batch_end = function(batch)
          if batch == stops then error("stop", 0) end
        end }
        local ok, problem = pcall(model.fit, model, pictures(), { verbose = 0, epochs = 2, callbacks = callbacks })
        assert.truthy(ok or problem == "stop", problem)
        return state_of(model)
      end
      results[1] = run(nil, {})
      run(3, { flow.callbacks.BackupAndRestore(folder, { save_freq = 2 }) })
      results[2] = run(nil, { flow.callbacks.BackupAndRestore(folder, { save_freq = 2 }) })
      model_files.assert_same_bits(results[1], results[2], "after the training went on")
    end
  end)
end)

describe("steps of a model's own", function()
  it("are traced for each size", function()
    local Net = flow.Model:extend("Own")
    function Net:init() self.convolution, self.pool, self.dense = layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(2) end
    function Net:call(x) return self.dense(self.pool(self.convolution(x))) end
    function Net:train_step(data)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return (self(data[1], { training = true }) - data[2]):square():mean() end)
      self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_variables), self.trainable_variables)
      return { loss = loss }
    end
    local folder = support.folder()
    local model = Net()
    model:compile { optimizer = "sgd" }
    local history = model:fit(pictures(), { verbose = 0, epochs = 3, callbacks = { flow.callbacks.BackupAndRestore(folder) } }).history
    assert.truthy(history.loss[3] < history.loss[1])
    assert.equal(3 * #SIZES, model.optimizer.iterations)
  end)
end)
