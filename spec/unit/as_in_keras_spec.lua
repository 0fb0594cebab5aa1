-- as_in_keras_spec.lua: names that Keras' objects have beside the common ones: shapes of outputs, options as fields, calls on other values
-- of variables, classes that extend initializers, regularizers and constraints.
local support = require "spec.support.init"
local flow = require "flow"

local layers, message_of = flow.layers, support.message_of
local function largest(a, b) return (a - b):abs():max():item() end

describe("compute_output_shape", function()
  it("gives the shape for one input, lists and tables of inputs, and leaves the layer unbuilt", function()
    local dense = layers.Dense(8)
    assert.same({ -1, 8 }, dense:compute_output_shape { -1, 4 })
    assert.same({ 32, 8 }, dense:compute_output_shape { 32, 4 })
    assert.same({ -1, 5, 8 }, dense:compute_output_shape { nil, 5, 7 })
    assert.is_false(dense.built)
    assert.same({ -1, 26, 26, 3 }, layers.Conv2D(3, 3):compute_output_shape { -1, 28, 28, 1 })
    assert.same({ -1, 4 }, layers.Add():compute_output_shape { { -1, 4 }, { -1, 4 } })
    assert.same({ { -1, 4 }, { -1, 4 }, { -1, 4 } }, layers.LSTM(4, { return_state = true }):compute_output_shape { -1, 5, 3 })
    local attention = layers.MultiHeadAttention(2, 3)
    assert.same({ -1, 5, 8 }, attention:compute_output_shape({ -1, 5, 8 }, { -1, 7, 8 }))
    assert.same({ -1, 5, 8 }, attention:compute_output_shape { query_shape = { -1, 5, 8 }, value_shape = { -1, 7, 8 } })
    assert.same({ -1, 6 }, layers.Bidirectional(layers.LSTM(3)):compute_output_shape { -1, 5, 2 })
    assert.same({ -1, 4 }, layers.TextVectorization({ output_sequence_length = 4, vocabulary = { "a" } }):compute_output_shape { -1 })
    local a, b = flow.Input({ 3 }, { name = "a" }), flow.Input({ 3 }, { name = "b" })
    local model = flow.Model { inputs = { a = a, b = b }, outputs = { sum = layers.Add() { a, b }, wide = layers.Dense(5)(a) } }
    assert.same({ sum = { -1, 3 }, wide = { -1, 5 } }, model:compute_output_shape { a = { -1, 3 }, b = { -1, 3 } })
    assert.matches("takes shapes such as", message_of(function() dense:compute_output_shape "x" end))
    assert.equal("(None, 8)", tostring(dense:compute_output_spec(flow.Input { 4 }).shape))
  end)

  it("draws no numbers, so that a layer begins as without it", function()
    flow.set_random_seed(3)
    local one = layers.Dense(4)
    one:build { -1, 3 }
    flow.set_random_seed(3)
    local other = layers.Dense(4)
    other:compute_output_shape { -1, 7 }
    other:build { -1, 3 }
    assert.equal(0, largest(one.kernel, other.kernel))
  end)

  it("has a counterpart in what a layer was built for", function()
    local attention, other = layers.MultiHeadAttention(2, 3), layers.MultiHeadAttention(2, 3)
    attention(flow.ones { 1, 5, 8 }, flow.ones { 1, 7, 8 })
    other:build_from_config(attention:get_build_config())
    assert.is_true(other.built)
    assert.equal(#attention.weights, #other.weights)
  end)
end)

describe("options", function()
  it("are fields, with axes from 1", function()
    assert.equal(4, flow.optimizers.schedules.CosineDecay(0.1, 4).decay_steps)
    assert.equal(0.5, flow.initializers.RandomNormal({ stddev = 0.5 }).stddev)
    assert.is_nil(flow.initializers.HeNormal().seed)
    assert.equal(2, flow.constraints.MaxNorm(3, 2).axis)
    assert.equal(2, flow.losses.CategoricalCrossentropy({ axis = 2 }).axis)
    assert.is_nil(flow.losses.Dice().axis)
    assert.same({ 0.5 }, flow.metrics.Precision().thresholds)
    assert.equal(2, flow.losses.Huber(2):from_config(flow.losses.Huber(2):get_config()).delta)
    assert.equal(1, layers.StringLookup().num_oov_indices)
    assert.matches('HeNormal has no field "seeds"; did you mean "seed"',
      message_of(function() return flow.initializers.HeNormal().seeds end))
  end)

  it("of initializers say which axes are inputs and outputs", function()
    -- keras.initializers.HeNormal(input_axes=[0], output_axes=[1, 2])((20, 30, 40)).numpy().std() = 0.3196
    local initializer = flow.initializers.HeNormal { input_axes = { 1 }, output_axes = { 2, 3 }, seed = 1 }
    assert.near(0.3162, initializer({ 20, 30, 40 }):std():item(), 0.004)
    assert.same({ 0 }, initializer:get_config().input_axes)
    assert.same({ 2, 3 }, initializer.output_axes)
    assert.matches("output_axes names axis 2", message_of(function() initializer { 3 } end))
  end)

  it("are those of fans by axes for kernels of attention and EinsumDense, as Keras' since 3.15", function()
    -- The largest numbers of Keras 3.15's layers are 0.1936 and 0.2499: limits sqrt(6 / (32 + 8 * 16)) and sqrt(6 / (8 * 4 + 64)).
    local attention, dense = layers.MultiHeadAttention(8, 16), layers.EinsumDense("abcd,cde->abe", { -1, 64 })
    attention(flow.zeros { 1, 2, 32 }, flow.zeros { 1, 2, 32 })
    dense(flow.zeros { 1, 2, 8, 4 })
    for _, weight in ipairs(attention.weights) do
      if weight.name:find "kernel" then assert.near(0.1935, weight:abs():max():item(), 0.0005) end
    end
    assert.near(0.2496, dense.kernel:abs():max():item(), 0.0005)
  end)
end)

describe("classes that extend", function()
  it("an initializer, a regularizer or a constraint of the library have its call and its options", function()
    local Half = flow.initializers.HeNormal:extend "Half"
    function Half:call(shape, options) return flow.initializers.HeNormal.call(self, shape, options) * 0.5 end
    local Twice = flow.regularizers.L2:extend "Twice"
    function Twice:call(x) return flow.regularizers.L2.call(self, x) * 2 end
    local Above = flow.constraints.MaxNorm:extend "Above"
    function Above:init(limit, shift)
      flow.constraints.MaxNorm.init(self, limit)
      self.shift = shift
    end
    function Above:call(w) return flow.constraints.MaxNorm.call(self, w) + self.shift end
    local half = Half { seed = 3 }
    assert.near(0, largest(half { 4, 4 }, flow.initializers.HeNormal({ seed = 3 }) { 4, 4 } * 0.5), 1e-7)
    assert.equal(3, half.seed)
    assert.equal(4, Twice(0.5)(flow.ones { 4 }):item())
    assert.same({ { 2.5 }, { 2.5 } }, Above(math.sqrt(8), 0.5)(flow.ones { 2, 1 } * 3):totable())
    flow.utils.register_keras_serializable("mine")(Half)
    flow.utils.register_keras_serializable("mine")(Twice)
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(2, { kernel_initializer = half, kernel_regularizer = Twice(0.5) }) }
    assert.near(0, largest(model.layers[1].kernel, half { 4, 2 }), 1e-7)
    local path = support.folder() .. "/extended.keras"
    model:save(path)
    local again = flow.load_model(path)
    assert.near(model.losses[1]:item(), again.losses[1]:item(), 1e-7)
    assert.equal("Half", again.layers[1].kernel_initializer.class_name)
  end)
end)

describe("calls on other values of variables", function()
  it("leave the variables unchanged", function()
    local dense = layers.Dense(2, { activity_regularizer = "l2" })
    dense:build { -1, 3 }
    local before = dense:get_weights()
    local values = { flow.ones { 3, 2 }, flow.ones { 2 } }
    local y, others, losses = dense:stateless_call(values, {}, flow.ones { 1, 3 }, { return_losses = true })
    assert.same({ { 4, 4 } }, y:totable())
    assert.equal(0, #others)
    assert.near(0.32, losses[1]:item(), 1e-6)
    assert.equal(0, largest(before[1], dense.kernel))
    local metric = flow.metrics.MeanSquaredError()
    values = metric:stateless_update_state(metric:stateless_reset_state(), flow.ones { 2, 2 }, flow.zeros { 2, 2 })
    assert.equal(1, metric:stateless_result(values))
    assert.equal(0, metric:result())
    assert.matches("takes a list of the values of 2 variables", message_of(function() metric:stateless_result { 1 } end))
  end)

  local Counting = layers.Layer:extend "CountingScale"      -- counts its calls and adds up its inputs
  function Counting:build(shape)
    self.scale = self:add_weight { name = "scale", shape = { shape[-1] }, initializer = "ones" }
    self.calls = self:add_weight { name = "calls", shape = {}, initializer = "zeros", trainable = false }
    self.total = self:add_weight { name = "total", shape = { shape[-1] }, initializer = "zeros", trainable = false }
  end
  function Counting:call(x)
    self.calls:assign_add(1)
    self.total:assign(self.total + x:sum(1))
    return x * self.scale / (1 + 0.1 * self.calls) + 0.01 * self.total
  end

  it("have gradients with respect to the values, eagerly and in a trace, of updates in a row, too", function()
    local model = flow.Sequential { layers.Input { 2 }, layers.Dense(3, { activation = "tanh" }), Counting(),
      layers.BatchNormalization { momentum = 0.5 }, layers.Dense(1) }
    local x, rate = flow.tensor { { 1, 2 }, { 3, 1 }, { -1, 0.5 } }, 0.1
    local count = #model.trainable_variables
    local function values_of(list)
      local values = {}
      for i, v in ipairs(list) do values[i] = v:value() end
      return values
    end
    local own, others = values_of(model.trainable_variables), values_of(model.non_trainable_variables)
    -- Loss, its gradient after one update by its own, which differentiates that, and the statistics.
    local function learn(values, batch)
      local outer, statistics = flow.GradientTape(), others
      local function loss_of(now, training)
        local y
        y, statistics = model:stateless_call(now, statistics, batch, { training = training })
        return ((y - 1) ^ 2):mean()
      end
      local loss = outer:record(function()
        outer:watch(values)
        local inner = flow.GradientTape()
        local first = inner:record(function() inner:watch(values); return loss_of(values, true) end)
        local next = {}
        for i, gradient in ipairs(inner:gradient(first, values)) do next[i] = values[i] - rate * gradient end
        return loss_of(next, false)
      end)
      return loss, outer:gradient(loss, values), statistics
    end
    local loss, gradients, statistics = learn(own, x)
    assert.equal(count, #gradients)
    local step = 1e-2
    for i = 1, count do      -- the same by differences, along the gradient
      local size = (gradients[i] ^ 2):sum():sqrt()
      local function moved(sign)
        local values = { unpack(own) }
        values[i] = own[i] + sign * step * gradients[i] / (size + 1e-6)
        return (learn(values, x)):item()
      end
      assert.near(size:item(), (moved(1) - moved(-1)) / (2 * step), 0.02 * size:item() + 2e-3)
    end
    local traced = { flow.fn(learn)(own, x) }
    assert.near(loss:item(), traced[1]:item(), 1e-5)
    for i = 1, count do assert.near(0, largest(gradients[i], traced[2][i]), 1e-4) end
    for i = 1, 2 do
      assert.near(0, largest(statistics[i], traced[3][i]), 1e-5)
      assert.is_true(largest(statistics[i], others[i]) > 0)
      assert.near(0, largest(model.non_trainable_variables[i], others[i]), 0)
    end
    for i, v in ipairs(model.trainable_variables) do assert.equal(0, largest(v, own[i])) end
    assert.is_false(pcall(model.stateless_call, model, own, { others[1], flow.ones { 7 } }, x))
    assert.equal(0, largest(model.non_trainable_variables[1], others[1]))
    assert.near(0, largest(model(x), model:stateless_call(own, others, x)), 1e-6)
  end)

  it("are updates of an optimizer, too, and trees of a model's state can be set", function()
    local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
    assert.is_false(model.compiled)
    model:compile { optimizer = "adam", loss = "mse" }
    local x, y = flow.random.normal({ 4, 3 }, { seed = 1 }), flow.random.normal({ 4, 2 }, { seed = 2 })
    model:fit(x, y, { verbose = 0 })
    local state, kernel = model:get_state_tree(), model:get_weights()[1]
    model:fit(x, y, { verbose = 0 })
    model:set_state_tree(state)
    assert.equal(0, largest(kernel, model:get_weights()[1]))
    assert.equal(1, model.optimizer.iterations)
    assert.matches('unknown key "trainable"', message_of(function() model:set_state_tree { trainable = {} } end))
    local v, adam = flow.Variable { 1, 2 }, flow.optimizers.Adam(0.5)
    adam:build { v }
    local values = {}
    for i, own in ipairs(adam.variables) do values[i] = own:value() end
    local after, own = adam:stateless_apply(values, { flow.ones { 2 } }, { flow.tensor { 5, 6 } })
    assert.near(0, largest(after[1], flow.tensor { 4.5, 5.5 }), 1e-5)
    assert.equal(1, own[1]:item())
    assert.same({ 1, 2 }, v:totable())
    assert.equal(0, adam.iterations)
  end)
end)

describe("recurrent layers", function()
  it("show their cell, with their own weights", function()
    local lstm = layers.LSTM(3)
    local x = flow.random.normal({ 2, 1, 4 }, { seed = 3 })
    local y = lstm(x)
    assert.equal(3, lstm.cell.units)
    assert.equal(lstm.kernel, lstm.cell.kernel)
    assert.near(0, largest(y, lstm.cell(x:reshape { 2, 4 }, lstm:get_initial_state(2))[1]), 1e-6)
    assert.matches("no field", message_of(function() return lstm.cell.return_sequences end))
    assert.same({ 3, 3 }, lstm.cell.state_size)
    assert.equal(2, #layers.RNN(layers.LSTMCell(3)):get_initial_state(2))
    assert.same({ 2, 3 }, { unpack(layers.GRUCell(3):get_initial_state(2)[1].shape) })
  end)
end)

describe("adapt()", function()
  it("takes nested lists of numbers", function()
    local layer = layers.Normalization()
    layer:adapt { { 1, 2 }, { 3, 6 } }
    assert.same({ { -1, -1 }, { 1, 1 } }, layer({ { 1, 2 }, { 3, 6 } }):totable())
    assert.matches("adapt%(%) takes a tensor", message_of(function() layers.Normalization():adapt "a" end))
  end)
end)

describe("Input", function()
  it("takes a symbolic tensor, and refuses inputs that may be left out", function()
    local hidden = layers.Dense(2)(flow.Input { 3 })
    local input = flow.Input { tensor = hidden }
    assert.same({ 2, 1 }, { unpack(flow.Model({ inputs = input, outputs = layers.Dense(1)(input) })(flow.ones { 2, 2 }).shape) })
    assert.matches("may be left out is not supported", message_of(function() flow.Input({ 3 }, { optional = true }) end))
  end)
end)

describe("numbers that Keras rounds or splits in its way", function()
  it("are penalties of whole numbers, whose factors are whole, too", function()
    local layer = layers.Permute({ 1 }, { activity_regularizer = flow.regularizers.L2(2.7) })
    layer(flow.tensor({ { 6, 5, 4 }, { 1, 1, 1 } }, { dtype = "int64" }))
    assert.equal(80, layer.losses[1]:item())      -- as keras.layers.Permute of int64: 2 * 80 / 2 rows
  end)

  it("are gradients of equal values in windows of adaptive_max_pool: the first one has it", function()
    -- tf.GradientTape of keras.ops.adaptive_max_pool(zeros) times 1, 2, ...
    local expected = { { { 1, 5, 1 }, { 1, 2, 0, 3, 0 } },
                       { { 1, 5, 4, 1 }, { 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0, 0, 7, 8, 9, 0, 0, 0, 0, 0 } } }
    for _, case in ipairs(expected) do
      local x, tape = flow.Variable(flow.zeros(case[1])), flow.GradientTape()
      local loss = tape:record(function()
        local y = flow.keras.ops.adaptive_max_pool(x, 3)
        return (y * flow.arange(1, y.size + 1):to("float32"):reshape(y.shape)):sum()
      end)
      assert.same(case[2], tape:gradient(loss, { x })[1]:reshape({ -1 }):totable())
    end
  end)
end)
