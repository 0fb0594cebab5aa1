-- backup_spec.lua: flow.callbacks.BackupAndRestore in one process: a run that an error ends, and one of a new model that goes on.

local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local ffi = require "ffi"
pcall(ffi.cdef, "int setenv(const char *name, const char *value, int overwrite); int unsetenv(const char *name);")

local x, y = flow.random.normal({ 60, 4 }, { seed = 1 }), flow.random.normal({ 60, 1 }, { seed = 2 })

local function new_model(width, optimizer)
  local layers = flow.layers
  flow.set_random_seed(3)
  local model = flow.Sequential {
    layers.Input { 4 }, layers.Dense(width or 8, { activation = "relu" }), layers.Dropout(0.2), layers.Dense(1),
  }
  model:compile { optimizer = optimizer or flow.optimizers.Adam(0.05), loss = "mse", metrics = { "mae" } }
  return model
end

-- Stops the run by an error (or by `how`) after this batch, counted over epochs.
local function bomb(at, how)
  local seen = 0
  return flow.callbacks.LambdaCallback { on_train_batch_end = function()
    seen = seen + 1
    if seen == at then (how or error)("bang") end
  end }
end

local read = support.read

describe("BackupAndRestore", function()
  local folder, sink, warnings
  before_each(function()
    folder = support.folder()
    warnings = {}
    sink = flow.log.sink
    flow.log.sink = function(level, text) if level == "warning" then warnings[#warnings + 1] = text end end
  end)
  after_each(function()
    debug.getregistry()["flowlua.cut"] = nil      -- the flowlua program, if it runs this file, tells its caller of none
    flow.log.sink = sink
    flow.io.rmtree(folder)
  end)

  local function backup(options)
    return flow.callbacks.BackupAndRestore(folder .. "/backup", options or { save_freq = 2 })
  end

  local function fit(callbacks, options)
    local model = new_model(options and options.width, options and options.optimizer)
    local how = { epochs = 4, batch_size = 10, verbose = 0, callbacks = callbacks }
    for name, value in pairs(options or {}) do if name ~= "width" and name ~= "optimizer" then how[name] = value end end
    local ok, history = pcall(model.fit, model, x, y, how)
    return ok and history.history or history, model, history
  end

  it("goes on as if nothing had been, other callbacks too, and deletes the backup at the end", function()
    local function others(name)
      local list = flow.callbacks
      return list.CSVLogger(folder .. "/" .. name), list.ReduceLROnPlateau { monitor = "loss", patience = 1, min_delta = 0.05 },
        list.EarlyStopping { monitor = "loss", patience = 2, min_delta = 0.01, restore_best_weights = true }
    end
    local expected, model = fit({ others("a.csv") }, { epochs = 12 })
    assert.is_true(#expected.loss > 3)
    for _, at in ipairs { 9, 12, 7 } do
      assert.matches("bang", (fit({ backup(), bomb(at), others("b.csv") }, { epochs = 12 })))
      assert.is_true(flow.io.exists(folder .. "/backup"))
    end
    local found, other, history = fit({ backup(), others("b.csv") }, { epochs = 12 })
    assert.same(expected, found)
    assert.equal(0, history.epoch[1])
    for i, weight in ipairs(model:get_weights()) do assert.same(weight:totable(), other:get_weights()[i]:totable()) end
    assert.equal(read(folder .. "/a.csv"), read(folder .. "/b.csv"))
    assert.is_false(flow.io.exists(folder .. "/backup"))
    assert.same({}, warnings)
  end)

  it("goes on with what a model that drops in validations, too, draws there", function()
    local function run(callbacks)
      flow.set_random_seed(3)
      local inputs = flow.Input { 4 }
      local model = flow.Model(inputs, flow.layers.Dense(1)(flow.layers.Dropout(0.3)(inputs, { training = true })))
      model:compile { optimizer = "sgd", loss = "mse" }
      local ok, history = pcall(model.fit, model, x, y,
        { epochs = 4, batch_size = 10, verbose = 0, callbacks = callbacks, validation_data = { x, y } })
      return ok and history.history or history
    end
    local expected = run {}
    assert.matches("bang", run { backup(), bomb(15) })
    assert.same(expected, run { backup() })
  end)

  it("goes on after the last batches of data of unknown length, of which steps_per_execution made less than an execution", function()
    local function generate()
      local row = 0
      return function()
        row = row + 1
        if row <= 45 then return x[row], y[row] end
      end
    end
    local signature = { flow.TensorSpec({ 4 }, "float32"), flow.TensorSpec({ 1 }, "float32") }
    -- five batches an epoch, in executions of three; the run ends when that with the number `at`, counted over epochs, begins
    local function run(at, ...)
      local executions, begun = 0, {}
      local hooks = flow.callbacks.LambdaCallback { on_train_batch_begin = function(batch)
        begun[#begun + 1], executions = batch, executions + 1
        if executions == at then error("bang", 0) end
      end }
      local model = new_model()
      model:compile { optimizer = "adam", loss = "mse", steps_per_execution = 3 }
      local data = flow.data.Dataset.from_generator(generate, { output_signature = signature }):batch(10)
      local ok, history = pcall(model.fit, model, data, { epochs = 3, verbose = 0, callbacks = { hooks, ... } })
      return ok and history.history or history, begun
    end
    local expected, begun = run(0)
    assert.same({ 0, 3, 0, 3, 0, 3 }, begun)
    for epoch = 1, 2 do
      assert.equal("bang", (run(2 * epoch + 1, backup { save_freq = 5 })))
      local found, rest = run(0, backup { save_freq = 5 })
      assert.same(expected, found)
      assert.equal(6 - 2 * epoch, #rest)
    end
  end)

  it("keeps the backup when asked, and when Ctrl-C ended the run", function()
    local expected = fit {}
    fit { backup { save_freq = "epoch", delete_checkpoint = false } }
    assert.is_true(flow.io.exists(folder .. "/backup/checkpoint"))
    assert.same(expected, (fit { backup { save_freq = "epoch" } }))      -- there was nothing left to do
    fit { backup(), bomb(9, function() native.C.flow_interrupt(native.context, 1) end) }
    assert.is_true(flow.io.exists(folder .. "/backup/checkpoint"))
    assert.same(expected, (fit { backup() }))
    assert.is_false(flow.io.exists(folder .. "/backup"))
    local stop = flow.callbacks.LambdaCallback { on_test_batch_end = function() native.C.flow_interrupt(native.context, 1) end }
    fit({ backup(), stop }, { validation_data = { x, y } })
    assert.is_true(flow.io.exists(folder .. "/backup/checkpoint"))
    assert.same(expected.loss, (fit({ backup() }, { validation_data = { x, y } })).loss)
  end)

  it("takes the one before when the newest is damaged, and starts from the beginning when there is none", function()
    local expected = fit {}
    for keep = 1, 2 do
      assert.matches("bang", (fit { backup { save_freq = 2, double_checkpoint = keep == 2 }, bomb(9) }))
      local names = flow.io.listdir(folder .. "/backup")
      assert.equal(keep + 1, #names)
      local path = folder .. "/backup/backup-4.safetensors"
      flow.io.write(path, read(path):sub(1, -2) .. "!")
      warnings = {}
      assert.same(expected, (fit { backup { save_freq = 2, double_checkpoint = keep == 2 } }))
      assert.equal(keep == 2 and 1 or 2, #warnings)
      assert.matches("backup%-4 cannot be used", warnings[1])
    end
  end)

  it("says why a backup does not belong to this run", function()
    assert.matches("bang", (fit { backup(), bomb(9) }))
    assert.matches("in batches of 10, shuffled, this run has 60 in batches of 20", (fit({ backup() }, { batch_size = 20 })))
    assert.matches("is float32 {4, 8} in the file, but float32 {4, 5} in the program", (fit({ backup() }, { width = 5 })))
    local model, data = new_model(), flow.data.Dataset.from_tensor_slices({ x, y }):batch(10)
    local ok, problem = pcall(model.fit, model, data, { verbose = 0, callbacks = { backup() } })
    assert.is_false(ok)
    assert.matches("made with tensors for training, this run has a Dataset", problem)
  end)

  it("builds a model that its first batch would build", function()
    local function run(callbacks)
      flow.clear_session()
      flow.set_random_seed(3)
      local model = flow.Sequential { flow.layers.Dense(3), flow.layers.Dropout(0.5), flow.layers.Dense(1) }
      model:compile { optimizer = "adam", loss = "mse" }
      local ok, history = pcall(model.fit, model, flow.data.Dataset.from_tensor_slices({ x, y }):shuffle(60):batch(10),
        { epochs = 3, verbose = 0, callbacks = callbacks })
      return ok and history.history or history
    end
    local expected = run {}
    assert.matches("bang", run { backup(), bomb(8) })
    assert.same(expected, run { backup() })
  end)

  it("goes on with every optimizer, and with learning rates that follow a schedule", function()
    local optimizers = flow.optimizers
    local makers = {
      function() return optimizers.SGD(0.05) end,
      function() return optimizers.SGD(0.05, { momentum = 0.9, nesterov = true }) end,
      function() return optimizers.RMSprop { learning_rate = 0.01, momentum = 0.5, centered = true } end,
      function() return optimizers.AdamW { weight_decay = 0.01, amsgrad = true } end,
      function() return optimizers.Adagrad(0.1) end,
      function() return optimizers.Adadelta(1) end,
      function() return optimizers.Adamax(0.05) end,
      function() return optimizers.Nadam(0.05) end,
      function() return optimizers.Ftrl(0.05, { l1_regularization_strength = 0.01 }) end,
      function() return optimizers.Lamb(0.05, { weight_decay = 0.01 }) end,
      function() return optimizers.Adafactor(0.05) end,
      function() return optimizers.Muon(0.05) end,
      function() return optimizers.ScheduleFreeAdamW(0.05) end,
      function() return optimizers.Adam(optimizers.schedules.ExponentialDecay(0.1, 3, 0.5)) end,
      function() return optimizers.Adam(0.05, { clipnorm = 0.5 }) end,
    }
    for _, make in ipairs(makers) do
      local expected, model = fit({}, { epochs = 2, optimizer = make() })
      assert.is_table(expected)
      assert.matches("bang", (fit({ backup(), bomb(8) }, { epochs = 2, optimizer = make() })))
      local found, other = fit({ backup() }, { epochs = 2, optimizer = make() })
      assert.same(expected, found)
      for i, variable in ipairs(model.optimizer.variables) do assert.same(variable:totable(), other.optimizer.variables[i]:totable()) end
    end
  end)

  it("takes the job's folder when none is given", function()
    local class = flow.callbacks.BackupAndRestore
    assert.error_matches(function() class() end, "backup_dir is missing")
    ffi.C.setenv("FLOW_JOB_DIR", folder .. "/job", 1)
    local made = class { save_freq = 1 }
    ffi.C.unsetenv("FLOW_JOB_DIR")
    assert.matches("bang", (fit { made, bomb(1) }))
    assert.matches("bang", (fit { made, bomb(2) }))
    assert.is_true(flow.io.exists(folder .. "/job/backup/checkpoint"))
    ffi.C.setenv("AIP_CHECKPOINT_DIR", folder .. "/vertex", 1)
    local of_vertex = class { save_freq = 1 }
    ffi.C.unsetenv("AIP_CHECKPOINT_DIR")
    assert.matches("bang", (fit { of_vertex, bomb(2) }))
    assert.is_true(flow.io.exists(folder .. "/vertex/backup/checkpoint"))
    assert.error_matches(function() class("d", { save_freq = 0 }) end, "save_freq")
    assert.error_matches(function() class("d", { save_frq = 2 }) end, 'did you mean "save_freq"')
  end)
end)
