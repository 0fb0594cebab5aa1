-- own_classes_spec.lua: classes of layers and models that a script defines, as Keras' guides to them do.
local flow = require "flow"
local support = require "spec.support.init"
local layers, message_of = flow.layers, support.message_of
local temporary = support.file("own_classes.keras", "")

local Linear = layers.Layer:extend "Linear"
function Linear:init(units, options)
  layers.Layer.init(self, options)
  self.units = units
end
function Linear:build(shape)
  self.w = self:add_weight { name = "w", shape = { shape[#shape], self.units } }
  layers.Layer.build(self, shape)      -- as super().build(input_shape)
end
function Linear:call(x) return x:matmul(self.w) end

local function same(a, b) return (a - b):abs():max():item() == 0 end

describe("build()", function()
  it("makes variables by add_weight, whose shape and initializer may stand before the other options, as in Keras", function()
    local Made = layers.Layer:extend "Made"
    function Made:build()
      self.a = self:add_weight({ 2, 3 }, "ones", { name = "a" })
      self.b = self:add_weight { 3 }
      self.c = self:add_weight({}, { name = "c", initializer = "ones", trainable = false })
      self.d = self:add_weight { shape = { 4 }, name = "d", initializer = "zeros" }
      self.e = self:add_weight()
    end
    function Made:call(x) return x end
    local layer = Made()
    layer(flow.ones { 1 })
    assert.same({ { 2, 3 }, { 3 }, {}, { 4 }, {} }, { layer.a.shape, layer.b.shape, layer.c.shape, layer.d.shape, layer.e.shape })
    assert.equal(6, layer.a:value():sum():item())
    assert.equal(1, layer.c:value():item())
    assert.is_false(layer.c.trainable)
    assert.equal("made/d", layer.d.path)
  end)

  it("that a script calls itself builds once: weights that it sets then stay", function()
    local layer = Linear(2)
    layer:build { -1, 3 }
    assert.is_true(layer.built)
    layer:set_weights { flow.ones { 3, 2 } }
    assert.equal(3, layer(flow.ones { 1, 3 })[{ 1, 1 }]:item())
    assert.equal(1, #layer.weights)
  end)

  it("that a layer does not define builds what is inside of it, for models, too", function()
    for _, parent in ipairs { flow.Model, layers.Layer } do
      local Net = parent:extend "Net"
      function Net:init()
        self.dense = layers.Dense(3)
        self.norm = layers.BatchNormalization()
        self.linear = Linear(2)
      end
      function Net:call(x) return self.linear(self.norm(self.dense(x))) end
      for _, shape in ipairs { { -1, 4 }, { input_shape = { -1, 4 } } } do
        local net = Net()
        net:build(shape)
        assert.equal(4 * 3 + 3 + 4 * 3 + 3 * 2, net:count_params())
        assert.equal(2, net(flow.ones { 5, 4 }).shape[2])
        assert.equal(7, #net.weights)
      end
    end
  end)

  it("that fails leaves the layer unbuilt", function()
    local Broken = layers.Layer:extend "Broken"
    function Broken:build() error("no such size", 0) end
    local layer = Broken()
    local ok, problem = pcall(layer.build, layer, { -1, 3 })
    assert.is_false(ok)
    assert.truthy(problem:find "no such size")
    assert.is_false(layer.built)
  end)
end)

describe("init() with its own options at the end", function()
  it("gets the name in them, however the arguments were given, as **kwargs has it", function()
    local Share = flow.metrics.Metric:extend "Share"
    function Share:init(threshold, options)
      options = options or {}
      options.name = options.name or "share"
      flow.metrics.Metric.init(self, options)
      self.threshold = threshold or 0.5
    end
    function Share:update_state() end
    function Share:result() return 0 end
    assert.equal("share", Share(0.1).name)
    assert.equal("share", Share { threshold = 0.1 }.name)
    assert.equal("mine", Share(0.1, { name = "mine" }).name)
    assert.equal("mine", Share { threshold = 0.1, name = "mine" }.name)
    assert.equal("mine", Share.from_config({ threshold = 0.1, name = "mine" }).name)
    local Rate = layers.Layer:extend "Rate"
    function Rate:init(units, rate) self.units, self.rate = units, rate end
    function Rate:call(x) return x end
    assert.is_nil(Rate({ units = 3, name = "r" }).rate)
    assert.is_false(Rate({ units = 3, trainable = false }).trainable)
  end)

  it("gets those that are false, and refuses those that it does not know, false or not", function()
    local Gate = layers.Layer:extend "Gate"
    function Gate:init(units, options) self.units, self.gates = units, options and options.gates end
    assert.is_false(Gate({ units = 3, gates = false }).gates)
    local Whole = layers.Layer:extend "Whole"
    function Whole:init(units, depth) self.units, self.depth = units, depth end
    assert.equal('Whole: unknown option "dept"; did you mean "depth"?',
      message_of(function() Whole { units = 3, depth = 2, dept = false } end))
  end)
end)

describe("call() that returns several values", function()
  local Encoder = layers.Layer:extend "Encoder"
  function Encoder:init() self.dense = layers.Dense(2) end
  function Encoder:call(x)
    local mean = self.dense(x)
    return mean, mean * 2, x
  end

  it("gives them all, eagerly and on symbolic tensors", function()
    local encoder = Encoder()
    local mean, twice, x = encoder(flow.ones { 3, 4 })
    assert.is_true(same(mean * 2, twice) and same(x, flow.ones { 3, 4 }))
    local input = flow.Input { 4 }
    local a, b, c = encoder(input)
    local model = flow.Model { inputs = input, outputs = { a, b, c } }
    local found = model:predict(flow.ones { 3, 4 }, { verbose = 0 })
    assert.is_true(same(found[2], twice))
    model:save(temporary)
    found = flow.load_model(temporary, { custom_objects = { Encoder = Encoder } }):predict(flow.ones { 3, 4 }, { verbose = 0 })
    assert.is_true(same(found[2], twice))
  end)

  it("are the outputs of a model in fit and predict", function()
    local Two = flow.Model:extend "Two"
    function Two:init() self.encoder = Encoder() end
    function Two:call(x)
      local mean, twice = self.encoder(x)
      return mean, twice
    end
    local model = Two()
    model:compile { optimizer = "sgd", loss = { "mse", "mae" } }
    local x, y = flow.ones { 8, 4 }, flow.zeros { 8, 2 }
    assert.equal(1, #model:fit(x, { y, y }, { verbose = 0 }).history.loss)
    assert.equal(2, #model:predict(x, { verbose = 0 }))
  end)
end)

describe("a constructor", function()
  local Block = layers.Layer:extend "Block"
  function Block:init(width, depth, options)
    layers.Layer.init(self, options)
    self.width, self.depth = width, depth or 1
  end
  function Block:call(x) return x * self.width end

  it("takes the parameters of init by name, as Keras' classes do", function()
    local by_name, partly = Block { width = 3, depth = 2, name = "b" }, Block(3, { depth = 2, name = "b" })
    for _, block in ipairs { Block(3, 2, { name = "b" }), partly, by_name } do
      assert.same({ 3, 2, "b" }, { block.width, block.depth, block.name })
    end
    local block = Block(3, { name = "b", trainable = false })
    assert.same({ 3, 1, "b", false }, { block.width, block.depth, block.name, block.trainable })
    local Stop = flow.callbacks.Callback:extend "Stop"
    function Stop:init(patience) self.patience = patience end
    assert.equal(4, Stop({ patience = 4 }).patience)
  end)

  it("has no parameter that is given the name, as VectorQuantizer(6, 4, name=\"vq\") in Python", function()
    local Plain, given = layers.Layer:extend "Plain", nil
    function Plain:init(units, depth, rate) given = { units or false, depth or false, rate or false } end
    assert.equal("b", Plain(6, 4, { name = "b" }).name)
    assert.same({ 6, 4, false }, given)
    assert.equal("b", Plain(6, 4, 0.5, { name = "b", trainable = false }).name)
    assert.same({ 6, 4, 0.5 }, given)
    assert.equal("b", Plain { name = "b" }.name)
    assert.same({ false, false, false }, given)
  end)

  it("refuses other names", function()
    local problem = message_of(function() Block { width = 3, depth = 2, options = {}, dept = 2 } end)
    assert.truthy(problem:find('Block: unknown option "dept"; did you mean "depth"?', 1, true), problem)
  end)

  it("is called with what get_config gave", function()
    local input = flow.Input { 3 }
    local model = flow.Model { inputs = input, outputs = Linear(2)(Block(2, 5)(input)) }
    local again = flow.Model.from_config(model:get_config(), { custom_objects = { Block = Block, Linear = Linear } })
    assert.equal(5, again.layers[2].depth)
    assert.equal(6, again:count_params())
    assert.truthy(message_of(function() flow.Model.from_config(model:get_config()) end):find "does not know")
  end)
end)

describe("the init of a model's class", function()
  it("may give a graph, as super().__init__(inputs, outputs) does", function()
    local Tracked = flow.Model:extend "Tracked"
    function Tracked:init(...)
      flow.Model.init(self, ...)
      self.tracker = flow.metrics.Mean { name = "tracked" }
    end
    function Tracked:metrics() return { self.tracker } end
    function Tracked:train_step(data)
      local x, y = unpack(data)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return (self(x) - y):square():mean() end)
      self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_variables), self.trainable_variables)
      self.tracker:update_state(loss)
      return { tracked = self.tracker:result() }
    end
    local input = flow.Input { 4 }
    local output = layers.Dense(2)(input)
    for _, model in ipairs { Tracked(input, output), Tracked { inputs = input, outputs = output, name = "mine" } } do
      model:compile { optimizer = "sgd" }
      assert.equal(1, #model:fit(flow.ones { 4, 4 }, flow.ones { 4, 2 }, { verbose = 0 }).history.tracked)
      model:save(temporary)
      local again = flow.load_model(temporary, { custom_objects = { Tracked = Tracked } })
      assert.is_true(same(again(flow.ones { 1, 4 }), model(flow.ones { 1, 4 })))
      assert.equal("tracked", again.tracker.name)
      assert.equal(model.name, again.name)
    end
  end)

  it("may make the graph itself; the file then has what its get_config gives", function()
    local Net = flow.Model:extend "Net"
    function Net:init(units)
      local input = flow.Input { 4 }
      flow.Model.init(self, { inputs = input, outputs = layers.Dense(units)(input), name = "net" })
      self.units = units
    end
    function Net:get_config() return { units = self.units } end
    local net = Net(3)
    assert.equal("net", net.name)
    assert.equal(15, net:count_params())
    net:save(temporary)
    local again = flow.load_model(temporary, { custom_objects = { Net = Net } })
    assert.equal(3, again.units)
    assert.is_true(same(again(flow.ones { 1, 4 }), net(flow.ones { 1, 4 })))
  end)

  it("may give the layers of a Sequential", function()
    local Stack = flow.Sequential:extend "Stack"
    function Stack:init(units)
      flow.Sequential.init(self, { layers.Input { 4 }, layers.Dense(units) }, { name = "stack" })
      self:add(layers.Dense(1))
      self.units = units
    end
    local stack = Stack(3)
    assert.equal("stack", stack.name)
    assert.equal(2, #stack.layers)
    assert.equal(1, stack(flow.ones { 1, 4 }).shape[2])
  end)
end)

describe("x.shape in call()", function()
  it("is a list, also where the number of rows is not known: it can be unpacked, and used in shapes", function()
    local Halves = layers.Layer:extend "Halves"
    function Halves:call(x)
      local rows, steps, channels = unpack(x.shape)
      return flow.zeros({ rows, steps, 2, channels / 2 }) + x:reshape { rows, steps, 2, channels / 2 }
    end
    local input = flow.Input { 3, 4 }
    local model = flow.Model { inputs = input, outputs = Halves()(input) }
    local x = flow.random.normal { 5, 3, 4 }
    assert.is_true(same(model:predict(x, { verbose = 0 }), x:reshape { 5, 3, 2, 2 }))
    local text
    local Named = layers.Layer:extend "Named"
    function Named:call(y)
      text = tostring(y.shape[1])
      return y
    end
    Named()(input)
    assert.equal("{None}", text)
  end)
end)

describe("a layer that uses the mask of its input", function()
  it("has it in a functional model where sizes are not known, too", function()
    local Share = layers.Layer:extend "Share"
    function Share:init() self.supports_masking = true end
    function Share:call(x, options)
      local counted = x:exp() * options.mask:expand_dims(-1):to "float32"
      return counted / counted:sum(2, true)
    end
    local input = flow.Input({ -1 }, { dtype = "int32" })
    local x = layers.Embedding { input_dim = 5, output_dim = 2, mask_zero = true }(input)
    local model = flow.Model { inputs = input, outputs = Share()(x) }
    local found = model(flow.tensor({ { 1, 2, 0 } }, { dtype = "int32" }))
    assert.equal(0, found[{ 1, 3, 1 }]:item())
    assert.truthy(math.abs(found:sum():item() - 2) < 1e-5)
    local outer = flow.Model { inputs = input, outputs = model(input) }
    assert.equal(-1, outer.output_shape[2])
  end)
end)

describe("update_state", function()
  it("takes the weights by name, or none of that name", function()
    local y, p = flow.tensor { { 0 }, { 1 }, { 1 }, { 0 } }, flow.tensor { { 0.2 }, { 0.6 }, { 0.3 }, { 0.7 } }
    local w = flow.tensor { 1, 2, 0.5, 3 }
    local Total = flow.metrics.Metric:extend "Total"
    function Total:init() self.total = self:add_variable { name = "total", shape = {}, initializer = "zeros" } end
    function Total:update_state(_, y_pred, sample_weight)
      self.total:assign_add((sample_weight and y_pred:squeeze(-1) * sample_weight or y_pred):sum())
    end
    function Total:result() return self.total:value():item() end
    for _, metric in ipairs { flow.metrics.MeanSquaredError(), flow.metrics.AUC(), flow.metrics.BinaryAccuracy(), Total() } do
      local function result(...)
        metric:reset_state()
        metric:update_state(y, p, ...)
        return metric:result()
      end
      assert.equal(result(w), result { sample_weight = w })
      assert.equal(result(), result {})
    end
    local mean = flow.metrics.Mean()
    mean:update_state({ 1, 3 }, { sample_weight = { 1, 0 } })
    assert.equal(1, mean:result())
  end)
end)

describe("a call of a layer written in Lua", function()
  local x = flow.ones { 1, 2 }
  local function refusal(layer, ...)
    local given = { ... }
    return message_of(function()
      local result = layer(x, unpack(given))
      return result
    end)
  end

  it("refuses an option and an argument that its call() does not name", function()
    local One, Two, Rest = layers.Layer:extend "One", layers.Layer:extend "Two", layers.Layer:extend "Rest"
    function One:call(inputs) return inputs end
    function Two:call(inputs, scale, training) return training and inputs * scale or inputs end
    function Rest:call(inputs, options) return options.factor and inputs * options.factor or inputs end
    local Model = flow.Model:extend "Wrapper"
    function Model:call(inputs) return inputs end
    for _, class in ipairs { One, Model } do
      assert.matches('unknown option "trainin"; did you mean "training"', refusal(class(), { trainin = true }))
      assert.matches("its call takes %(inputs%); a tensor float32 {1, 2} cpu is one argument too many", refusal(class(), x))
      assert.equal(1, class()(x, { training = true })[{ 1, 1 }]:item())
    end
    assert.matches('unknown option "scal"; did you mean "scale"', refusal(Two(), { scal = 2, training = true }))
    assert.matches('unknown option "factor"', refusal(Two(), 2, true, { factor = 1 }))
    assert.equal(2, Two()(x, { scale = 2, training = true })[{ 1, 1 }]:item())
    assert.equal(3, Rest()(x, { factor = 3 })[{ 1, 1 }]:item())
  end)
end)
