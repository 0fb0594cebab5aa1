-- odd_values_spec.lua: values that compile, fit, callbacks, models and files are rarely given: false, NaN, numbers for names, tables for
-- numbers, axis 0, callable objects. What stands for nothing counts as nothing, and what is wrong is named.
local support = require "spec.support.init"
local flow = require "flow"
local layers, losses, metrics, optimizers, callbacks = flow.layers, flow.losses, flow.metrics, flow.optimizers, flow.callbacks
local message_of = support.message_of

local x, y = flow.ones { 4, 2 }, flow.ones { 4, 1 }

local function small(options)
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1, { kernel_initializer = "zeros" }) }
  model:compile(options or { loss = "mse", optimizer = "sgd" })
  return model
end

local function says(expected, f) assert.equal(expected, message_of(f)) end

describe("losses and metrics", function()
  it("count axes from 1", function()
    local zero = ": axis is 0; axes count from 1, -1 is the last"
    says("CategoricalCrossentropy" .. zero, function() losses.CategoricalCrossentropy { axis = 0 } end)
    says("CategoricalCrossentropy" .. zero, function() metrics.CategoricalCrossentropy { axis = 0 } end)
    says("flow.losses.categorical_crossentropy" .. zero,
      function() losses.categorical_crossentropy({ { 0, 1 } }, { { 0.5, 0.5 } }, { axis = 0 }) end)
  end)

  it("have names that are texts", function()
    says("Huber: name is a string, got the number 3", function() losses.Huber { name = 3 } end)
    says("Adam: name is the number 3, expected a text", function() optimizers.Adam { name = 3 } end)
    says("Lamb: name is the number 3, expected a text", function() optimizers.Lamb { name = 3 } end)
  end)

  it("take numbers and lists that functions of a script give", function()
    local Fixed = losses.Loss:extend "Fixed"
    function Fixed:call() return { 1, 3 } end
    assert.equal(2, Fixed()(flow.ones { 2 }, flow.ones { 2 }):item())
    assert.equal(3, metrics.MeanMetricWrapper(function() return 3 end)(y, y))
  end)

  it("may be false in a list, which stands for None", function()
    local model = small { loss = "mse", optimizer = "sgd", metrics = { false, "mae" } }
    assert.same({ "loss", "mae" }, model.metrics_names)
    says("Precision: entry 1 of thresholds is the number nan, expected a number from 0 to 1",
      function() metrics.Precision { thresholds = { math.abs(0 / 0) } } end)
  end)

  it("that compile was given as descriptions are in files again", function()
    local input = flow.Input { 2 }
    local model = flow.Model { inputs = input, outputs = { layers.Dense(3)(input), layers.Dense(1)(input) } }
    model:compile { optimizer = "sgd", loss = { { class_name = "SparseCategoricalCrossentropy", config = { from_logits = true } }, "mse" } }
    assert.matches('"config":{"from_logits":true}', model:to_json(), 1, true)

    local code = [[local flow = require "flow"      -- where flow.optimizers was not asked for yet
      local model = flow.Sequential { flow.Input { 2 } }
      model:compile { optimizer = { class_name = "SGD", config = { momentum = 0.5 } } }
      io.write(model.optimizer.momentum)]]
    assert.equal("0.5", (support.run(("%s -e '%s'"):format(os.getenv "FLOW_LUA" or "luajit", code))))
  end)
end)

describe("classes where objects are meant", function()
  it("are named, with what to write", function()
    local model = small()
    local function compiled(options) return function() model:compile(options) end end
    says("flow.optimizers.get was given the class flow.optimizers.Adam itself: write flow.optimizers.Adam() for an object of it",
      compiled { optimizer = optimizers.Adam })
    says("flow.losses.get was given the class flow.losses.Huber itself: write flow.losses.Huber() for an object of it",
      compiled { loss = losses.Huber })
    says("flow.metrics.get was given the class flow.metrics.AUC itself: write flow.metrics.AUC() for an object of it",
      compiled { metrics = { metrics.AUC } })
    says("an optimizer is an object such as flow.optimizers.Adam() or a name such as \"adam\", got a Dense",
      compiled { optimizer = layers.Dense(1) })
    says("a loss is an object, a name or a function(y_true, y_pred), got an Adam", compiled { loss = optimizers.Adam() })
    says("a metric is an object, a name or a function(y_true, y_pred), got an Adam", compiled { metrics = { optimizers.Adam() } })
    says("get is not a method, it was called with a colon: write flow.losses.get(...), with a dot", function() losses:get "mse" end)
  end)
end)

describe("optimizers", function()
  it("say what is missing in a description", function()
    assert.matches("^expected {\"class_name\": ...", message_of(function() optimizers.from_json '{"class_name":"LossScaleOptimizer"}' end))
    says("Lamb: the config of an optimizer is a table, got the number 3",
      function() optimizers.from_json '{"class_name":"Lamb","config":3}' end)
    assert.matches("^ExponentialDecay: option \"[%w_]+\" is missing", message_of(function()
      optimizers.from_json '{"class_name":"Lamb","config":{"learning_rate":{"class_name":"ExponentialDecay","config":3}}}'
    end))
  end)

  it("give the variables of add_optimizer_variables a name", function()
    local Plain = optimizers.Optimizer:extend "Plain"
    function Plain:build(variables) self.velocities = self:add_optimizer_variables(variables) end
    says("optimizer:add_optimizer_variables: name is missing: it is a string or a list",
      function() Plain():build { flow.Variable(flow.ones { 2 }) } end)
  end)

  it("have a state whose parts have names", function()
    assert.matches('set_state_tree: unknown key "1"$', message_of(function() small():set_state_tree { {} } end))
  end)
end)

describe("flow.utils.get_registered_object", function()
  it("finds the object of the first of several packages with one name, in every process", function()
    local first
    for i = 1, 20 do
      local function own() return i end
      if i == 1 then first = own end
      flow.utils.register_keras_serializable(("package%02d"):format(i), "shared_name")(own)
    end
    assert.equal(first, flow.utils.get_registered_object "shared_name")
  end)
end)

describe("callbacks", function()
  it("may put anything into the logs", function()
    local lines, before = {}, flow.log.sink
    finally(function() flow.log.sink = before end)
    flow.log.sink = function(_, text) lines[#lines + 1] = text end
    local path = support.folder() .. "/log.csv"
    local adds = callbacks.LambdaCallback { on_epoch_end = function(_, logs)
      logs[1], logs.note, logs.is_best, logs.scalar, logs.list = 4, "good", true, flow.tensor(0.5), {}
    end }
    small():fit(x, y, { verbose = 2, callbacks = { adds, callbacks.CSVLogger(path), callbacks.TensorBoard(support.folder()),
      callbacks.EarlyStopping { monitor = "none", mode = "min" } } })
    local text = table.concat(lines)
    assert.matches(" %- is_best: true %- list: a table %- loss: [%d.]+ %- note: good %- scalar: 0.5000\n", text)
    assert.matches("Available metrics are: 1,is_best,list,", text)
    assert.matches("^epoch,is_best,list,loss,note,scalar,val_is_best,", support.read(path))
  end)

  it("keep a field of a script's own that was set to nil after it had a value", function()
    local Best = callbacks.Callback:extend "Best"
    function Best:init() self.best = 3 end
    function Best:on_epoch_end()
      self.best = nil
      self.seen = self.best == nil
    end
    local best = Best()
    small():fit(x, y, { verbose = 0, callbacks = { best } })
    assert.is_true(best.seen)
    assert.matches('Best has no field "bset"', message_of(function() return best.bset end))
  end)

  it("fill a path with names that steps and metrics of a model's own report, inherited or not", function()
    local Stepped = flow.Model:extend "Stepped"
    function Stepped:init() self.dense = layers.Dense(1) end
    function Stepped:call(value) return self.dense(value) end
    local Measured = Stepped:extend "Measured"
    function Stepped:train_step(data)
      local logs = flow.Model.train_step(self, data)
      logs.extra = flow.tensor(1.5)
      return logs
    end
    function Measured:train_step(data) return flow.Model.train_step(self, data) end
    function Measured:compute_metrics(...)
      local results = flow.Model.compute_metrics(self, ...)
      results.extra = flow.tensor(2.5)
      return results
    end
    for name, class in pairs { ["1.5"] = Stepped:extend "Inherited", ["2.5"] = Measured } do
      local model, folder = class(), support.folder()
      model:compile { loss = "mse", optimizer = "sgd" }
      model:fit(x, y, { verbose = 0, callbacks = {
        callbacks.ModelCheckpoint(folder .. "/{extra:.1f}.weights.h5", { save_weights_only = true }) } })
      assert.is_true(support.exists(folder .. "/" .. name .. ".weights.h5"))
    end
  end)
end)

describe("models", function()
  it("are quantized by a data set before they are built", function()
    local model = flow.Sequential { layers.Dense(1) }
    model:compile { loss = "mse", optimizer = "sgd" }
    model:quantize(flow.data.Dataset.from_tensor_slices(x):batch(2))
    assert.same({ 4, 1 }, { unpack(model:predict(x, { verbose = 0 }).shape) })
  end)

  it("are written again where an operation's entry had no config", function()
    local tensor = '{"class_name":"__keras_tensor__","config":{"shape":[null,4,4,1],"dtype":"float32","keras_history":["a",0,0]}}'
    local model = flow.models.model_from_json('{"class_name":"Functional","config":{"name":"f","layers":[{"class_name":"InputLayer",'
      .. '"name":"a","config":{"batch_shape":[null,4,4,1],"dtype":"float32","name":"a"},"inbound_nodes":[]},{"class_name":'
      .. '"AffineTransform","name":"t","module":"keras.src.ops.image","registered_name":"AffineTransform","inbound_nodes":[{"args":['
      .. tensor .. ',{"class_name":"__numpy__","config":{"dtype":"float32","value":[[1,0,0,0,1,0,0,0]]}}],"kwargs":{}}]}],'
      .. '"input_layers":[["a",0,0]],"output_layers":[["t",0,0]]}}')
    local pictures = flow.random.uniform({ 2, 4, 4, 1 }, { seed = 1 })
    local again = flow.models.model_from_json(model:to_json())
    assert.same(pictures:totable(), again:predict(pictures, { verbose = 0 }):totable())
  end)

  it("name unknown options, and wrong inputs and entries", function()
    local input = flow.Input { 2 }
    says("flow.Model takes inputs, outputs and a table of options, got the number 5",
      function() flow.Model(input, { a = layers.Dense(1)(input) }, 5) end)
    says("clone_model: input_tensors holds what flow.Input gives, entry 1 is the number 5",
      function() flow.models.clone_model(small(), 5) end)
    for _, class_name in ipairs { "Sequential", "Functional" } do
      says("model_from_json: an entry of the model is not a table", function()
        flow.models.model_from_json(('{"class_name":"%s","config":{"name":"s","layers":[1]}}'):format(class_name))
      end)
    end
    says("model_from_json: a call in inbound_nodes is not a table", function()
      flow.models.model_from_json('{"class_name":"Functional","config":{"name":"f","layers":[{"class_name":"Dense","name":"d",'
        .. '"config":{"units":2,"name":"d"},"inbound_nodes":[3]}],"input_layers":[],"output_layers":[]}}')
    end)
    says('"i": dtype is an object whose config is the number 5, expected {"name": "float32"}', function()
      flow.models.model_from_json('{"class_name":"Sequential","config":{"name":"s","layers":[{"class_name":"InputLayer","config":'
        .. '{"batch_shape":[null,2],"dtype":{"class_name":"DTypePolicy","config":5},"name":"i"}}]}}')
    end)
    says('an operation\'s axis is the string "x", expected a whole number', function()
      local sums = flow.Input { 2, 3 }
      local text = flow.Model { inputs = sums, outputs = flow.sum(sums, 2) }:to_json()
      flow.models.model_from_json((text:gsub('"axis":1', '"axis":"x"')))
    end)
    local path = support.folder() .. "/m.onnx"
    says("export: the name of input 1 is a string, got the number 3",
      function() small():export(path, { inputs = { { shape = { -1, 2 }, name = 3 } } }) end)
    says('export: size 2 of input 1 is the string "a", expected a number',
      function() small():export(path, { inputs = { { shape = { -1, "a" } } } }) end)
    assert.matches("^flow.tensor: expected a number", message_of(function() losses.deserialize { class_name = "__tensor__" } end))
  end)
end)

describe("checkpoints", function()
  it("are managed by numbers and callable objects", function()
    local checkpoint, folder = flow.train.Checkpoint { v = flow.Variable(1) }, support.folder()
    assert.matches("max_to_keep is a number from 1, got the number %-?nan",
      message_of(function() flow.train.CheckpointManager(checkpoint, folder, { max_to_keep = 0 / 0 }) end))
    local called = 0
    local init = setmetatable({}, { __call = function() called = called + 1 end })
    flow.train.CheckpointManager(checkpoint, folder .. "/new", { init_fn = init }):restore_or_initialize()
    assert.equal(1, called)
  end)

  it("are evaluated with the weights of samples", function()
    local model, folder = small { loss = "mse", optimizer = "sgd", weighted_metrics = { "mse" } }, support.folder()
    model:save_weights(folder .. "/a.weights.h5")
    local found
    local see = callbacks.LambdaCallback { on_test_end = function(logs) found = logs end }
    local evaluator = flow.train.SidecarEvaluator { model = model, data = { x, flow.tensor { { 1 }, { 2 }, { 3 }, { 4 } },
      flow.tensor { 0, 0, 0, 1 } }, checkpoint_dir = folder, max_evaluations = 1, callbacks = { see } }
    assert.equal(1, evaluator:start())
    assert.equal(4, found.loss)
    assert.equal(16, found.mse)
  end)
end)
