-- checkpoint_spec.lua: flow.train: what is saved comes back, in another model too; damage is seen; old files go when new ones are safe.

local support = require "spec.support.init"
local flow = require "flow"
local state = require "flow.state_codec"
local directory = require "flow.checkpoint.directory"
local tensor_file = require "flow.saving.tensor_file"

local function new_model()
  local model = flow.Sequential {
    flow.layers.Input { 3 }, flow.layers.Dense(4, { activation = "relu" }), flow.layers.BatchNormalization(), flow.layers.Dense(2),
  }
  model:compile { optimizer = flow.optimizers.Adam(0.01), loss = "mse", metrics = { "mae" } }
  return model
end

local x, y = flow.random.normal({ 8, 3 }, { seed = 1 }), flow.random.normal({ 8, 2 }, { seed = 2 })

local function numbers(list)
  local all = {}
  for i, v in ipairs(list) do all[i] = v:totable() end
  return all
end

local read, write = support.read, support.write

describe("flow.train", function()
  local folder, sink, warnings
  before_each(function()
    folder = support.path()
    warnings = {}
    sink = flow.log.sink
    flow.log.sink = function(level, text) if level == "warning" then warnings[#warnings + 1] = text end end
  end)
  after_each(function()
    flow.log.sink = sink
    if flow.io.exists(folder) then flow.io.rmtree(folder) end
  end)

  it("restores a model, its optimizer and a step into others", function()
    local model, step = new_model(), flow.Variable(7, { dtype = "int64" })
    for _ = 1, 3 do model:train_on_batch(x, y) end
    local path = flow.train.Checkpoint { model = model, step = step }:save(folder .. "/a/ckpt")
    assert.equal(folder .. "/a/ckpt-1", path)
    assert.equal(path, flow.train.latest_checkpoint(folder .. "/a"))
    local other, other_step = new_model(), flow.Variable(0, { dtype = "int64" })
    flow.train.Checkpoint { model = other, step = other_step }:restore(path):assert_consumed()
    assert.same(numbers(model.weights), numbers(other.weights))
    assert.same(numbers(model.optimizer.variables), numbers(other.optimizer.variables))
    assert.equal(7, other_step:item())
    assert.same(model:train_on_batch(x, y), other:train_on_batch(x, y))
    assert.same(numbers(model.weights), numbers(other.weights))
    assert.same({}, warnings)
  end)

  it("holds what is added later, before and after a restore", function()
    local model, step = new_model(), flow.Variable(7)
    for _ = 1, 2 do model:train_on_batch(x, y) end
    local checkpoint = flow.train.Checkpoint {}
    checkpoint.model, checkpoint.step = model, step
    local path = checkpoint:write(folder .. "/late")
    assert.equal(model, checkpoint.model)
    local other, late = new_model(), flow.train.Checkpoint()
    local status = late:restore(path):expect_partial()
    assert.has.errors(function() status:assert_consumed() end)
    late.step = flow.Variable(0)
    assert.equal(7, late.step:item())
    late.model = other
    status:assert_consumed()
    assert.same(numbers(model.weights), numbers(other.weights))
    assert.same(numbers(model.optimizer.variables), numbers(other.optimizer.variables))
    late.step:assign(1)
    late.more = flow.Variable(5)      -- the file does not have it
    assert.equal(5, late.more:item())
    assert.has.errors(function() status:assert_existing_objects_matched() end)
    assert.equal(1, late.step:item())
    late.more = nil
    assert.has.errors(function() return late.more end)
    assert.matches("holds models, layers", support.message_of(function() late.number = 5 end), 1, true)
    assert.matches("not save_counter", support.message_of(function() late["a/b"] = step end), 1, true)
    flow.train.Checkpoint { step = flow.Variable(0) }:restore(path):assert_nontrivial_match()
    assert.matches("nothing of what", support.message_of(function()
      flow.train.Checkpoint { none = flow.Variable(0) }:restore(path):assert_nontrivial_match()
    end), 1, true)
  end)

  it("is a file that any reader of safetensors opens, with paths as names", function()
    local path = flow.train.Checkpoint { model = new_model() }:write(folder .. ".x")
    local file = tensor_file.open(path .. ".safetensors")
    assert.same({ 3, 4 }, file:shape("model/layers/0/kernel"))
    assert.same({ 4 }, file:shape("model/layers/1/moving_variance"))
    file:close()
    os.remove(path .. ".safetensors")
  end)

  it("holds iterators, random state, metrics and plain values of tables", function()
    flow.set_random_seed(5)
    local function pipeline() return flow.data.Dataset.range(20):shuffle(20, { seed = 3 }):batch(2) end
    local iterator, plain, mean = pipeline():iter(), { best = 0.1 + 0.2, name = "a", deep = { on = true } }, flow.metrics.Mean("m")
    for _ = 1, 4 do iterator() end
    mean:update_state(flow.tensor { 1, 2 })
    local checkpoint = flow.train.Checkpoint { data = iterator, plain = plain, mean = mean, random = flow.random }
    local path = checkpoint:save(folder .. "/c")
    local expected = { iterator():totable(), flow.random.normal({ 2 }):totable() }
    local again, changed, fresh = pipeline():iter(), { deep = {} }, flow.metrics.Mean("n")
    flow.random.normal { 2 }
    flow.train.Checkpoint { data = again, plain = changed, mean = fresh, random = flow.random }:restore(path):assert_consumed()
    assert.same(expected, { again():totable(), flow.random.normal({ 2 }):totable() })
    assert.same(plain, changed)
    assert.equal(1.5, fresh:result())
  end)

  it("fills a cache also by what a restored iterator passes over", function()
    local made = 0
    local function pipeline()
      return flow.data.Dataset.from_generator(function()
        local i = 0
        return function()
          if i == 6 then return nil end
          i, made = i + 1, made + 1
          return flow.tensor(i)
        end
      end, { output_signature = { { shape = {}, dtype = "float32" } } }):cache()
    end
    local iterator, again = pipeline():iter(), pipeline()
    for _ = 1, 4 do iterator() end
    local path = flow.train.Checkpoint { data = iterator }:write(folder .. ".c")
    local restored, found = again:iter(), {}
    made = 0
    flow.train.Checkpoint { data = restored }:restore(path):assert_consumed()
    for value in restored do found[#found + 1] = value:item() end
    assert.same({ 5, 6 }, found)
    assert.equal(6, made)
    for value in again:iter() do found[#found + 1] = value:item() end
    assert.same({ 5, 6, 1, 2, 3, 4, 5, 6 }, found)
    assert.equal(6, made)
    os.remove(path .. ".safetensors")
  end)

  it("says what fits and what does not, and changes nothing when something cannot fit", function()
    local a, b = flow.Variable { 1, 2 }, flow.Variable { 3 }
    local path = flow.train.Checkpoint { a = a, b = b }:save(folder .. "/c")
    local only = flow.Variable { 0, 0 }
    local status = flow.train.Checkpoint { a = only, c = b }:restore(path)
    assert.same({ 1, 2 }, only:totable())
    assert.error_matches(function() status:assert_existing_objects_matched() end, "does not have c")
    status = flow.train.Checkpoint { a = only }:restore(path):assert_existing_objects_matched()
    assert.error_matches(function() status:assert_consumed() end, "nothing in the program takes b")
    local wrong, right = flow.Variable { 9, 9, 9 }, flow.Variable { 8, 8 }
    assert.error_matches(function() flow.train.Checkpoint { b = wrong, a = right }:restore(path) end, '"b" is float32 {1} in the file')
    assert.same({ 8, 8 }, right:totable())
    assert.error_matches(function() flow.train.Checkpoint { x = 3 } end, "x is the number 3")
    assert.error_matches(function() flow.train.Checkpoint { d = flow.data.Dataset.range(3) } end, "dataset:iter%(%)")
    assert.equal(0, #flow.train.Checkpoint({ a = a }):restore(nil):assert_consumed().missing)
  end)

  it("warns of a restore in part unless that is meant", function()
    local path = flow.train.Checkpoint { a = flow.Variable { 1 }, b = flow.Variable { 2 } }:save(folder .. "/c")
    flow.train.Checkpoint({ a = flow.Variable { 0 } }):restore(path):expect_partial()
    collectgarbage()
    collectgarbage()
    assert.same({}, warnings)
    flow.train.Checkpoint({ a = flow.Variable { 0 } }):restore(path)
    collectgarbage()
    collectgarbage()
    assert.equal(1, #warnings)
    assert.matches("restored in part", warnings[1])
  end)

  it("keeps the newest, in a folder that TensorFlow's text describes", function()
    local v = flow.Variable(0)
    local manager = flow.train.CheckpointManager(flow.train.Checkpoint { v = v }, folder, { max_to_keep = 2 })
    assert.is_nil(manager:restore_or_initialize())
    for i = 1, 4 do
      v:assign(i)
      assert.equal(folder .. "/ckpt-" .. i, manager:save())
    end
    assert.same({ folder .. "/ckpt-3", folder .. "/ckpt-4" }, manager.checkpoints)
    assert.same({ "checkpoint", "ckpt-3.safetensors", "ckpt-4.safetensors" }, flow.io.listdir(folder))
    assert.matches('^model_checkpoint_path: "ckpt%-4"\nall_model_checkpoint_paths: "ckpt%-3"\nall_model_checkpoint_paths: "ckpt%-4"\n',
      read(folder .. "/checkpoint"))
    local again = flow.train.CheckpointManager(flow.train.Checkpoint { v = v }, folder, { max_to_keep = 2 })
    v:assign(0)
    assert.equal(folder .. "/ckpt-4", again:restore_or_initialize())
    assert.equal(4, v:item())
    assert.equal(folder .. "/ckpt-5", again:save())
    assert.same({ folder .. "/ckpt-4", folder .. "/ckpt-5" }, again.checkpoints)
  end)

  it("takes the one before when the newest is damaged, and names it", function()
    local v = flow.Variable { 1, 2, 3 }
    local manager = flow.train.CheckpointManager(flow.train.Checkpoint { v = v }, folder, { max_to_keep = 3 })
    manager:save()
    v:assign { 4, 5, 6 }
    local newest = manager:save() .. ".safetensors"
    local text = read(newest)
    for _, place in ipairs { #text, #text - 10, 3, 12, 40, 200 } do
      write(newest, text:sub(1, place - 1) .. string.char((text:byte(place) + 1) % 256) .. text:sub(place + 1))
      warnings = {}
      assert.equal(folder .. "/ckpt-1", flow.train.CheckpointManager(flow.train.Checkpoint { v = v }, folder):restore_or_initialize())
      assert.same({ 1, 2, 3 }, v:totable())
      assert.equal(1, #warnings)
      assert.matches("ckpt%-2 cannot be used", warnings[1])
    end
    write(newest, "")
    write(folder .. "/ckpt-1.safetensors", "{}")
    assert.error_matches(function()
      flow.train.CheckpointManager(flow.train.Checkpoint { v = v }, folder):restore_or_initialize()
    end, "no sound checkpoint")
  end)

  it("saves in the background what the values were", function()
    local v = flow.Variable(flow.ones { 1000, 100 })
    local manager = flow.train.CheckpointManager(flow.train.Checkpoint { v = v }, folder, { max_to_keep = 1, async = true })
    for i = 1, 3 do
      v:assign(flow.full({ 1000, 100 }, i))
      manager:save()
      v:assign(flow.zeros { 1000, 100 })
    end
    manager:close()
    assert.same({ "checkpoint", "ckpt-3.safetensors" }, flow.io.listdir(folder))
    manager:restore_or_initialize()
    assert.equal(3, v:min():item())
    flow.io.makedirs(folder .. "/ckpt-4.safetensors/in the way")
    manager:save()
    assert.error_matches(function() manager:sync() end, "ckpt%-4 was not saved")
    manager:sync()
  end)

  -- Trains for some steps by a traced function, and returns the weights, the slots and the losses.
  local function train(steps, restore)
    local Net = flow.Model:extend "Net"
    function Net:init() self.l1, self.l2 = flow.layers.Dense(4, { activation = "tanh" }), flow.layers.Dense(2) end
    function Net:call(rows) return self.l2(self.l1(rows)) end
    local net, optimizer = Net(), flow.optimizers.Adam(0.1)
    local checkpoint = flow.train.Checkpoint { net = net, optimizer = optimizer }
    local status = restore and checkpoint:restore(restore)
    local step = flow.fn(function(rows, targets)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return (net(rows) - targets):square():mean() end)
      optimizer:apply_gradients(tape:gradient(loss, net.trainable_variables), net.trainable_variables)
      return loss
    end)
    local losses = {}
    for i = 1, steps do losses[i] = step(x, y):item() end
    return checkpoint, { weights = numbers(net.weights), slots = numbers(optimizer.variables), losses = losses }, status
  end

  it("restores what has no variables yet when it gets them, before they are used", function()
    flow.set_random_seed(3)
    local checkpoint = train(5)
    local path = checkpoint:save(folder .. "/half")
    local _, got, status = train(5, path)
    flow.set_random_seed(3)
    local _, whole = train(10)
    for i = 1, 5 do assert.equal(whole.losses[5 + i], got.losses[i]) end
    assert.same({ whole.weights, whole.slots }, { got.weights, got.slots })
    status:assert_consumed()
    assert.same({}, warnings)
    assert.is_false(require("flow.tensor.variable").awaited)          -- nothing is waited for any more

    local model = flow.Sequential { flow.layers.Dense(2) }
    local other = flow.Sequential { flow.Input { 3 }, flow.layers.Dense(2) }
    for _, one in ipairs { model, other } do one:compile { optimizer = flow.optimizers.Adam(0.1), loss = "mse" } end
    other:fit(x, y, { epochs = 2, verbose = 0 })
    path = flow.train.Checkpoint { model = other }:save(folder .. "/sequential")
    flow.train.Checkpoint { model = model }:restore(path)
    collectgarbage()
    assert.equal(other:evaluate(x, y, { verbose = 0 }).loss, model:evaluate(x, y, { verbose = 0 }).loss)
    for _, one in ipairs { model, other } do one:fit(x, y, { shuffle = false, verbose = 0 }) end
    assert.same(numbers(other.weights), numbers(model.weights))

    local wide = flow.Sequential { flow.layers.Dense(3) }
    flow.train.Checkpoint { model = wide }:restore(path)
    assert.error_matches(function() wide(x) end, "layers/0/kernel\" is float32 {3, 2} in the file, but float32 {3, 3} in the program")
    flow.train.Checkpoint { model = flow.Sequential { flow.layers.Dense(3) } }:restore(path)
    collectgarbage()
    collectgarbage()
    flow.layers.Dense(1)(x)
    assert.is_false(require("flow.tensor.variable").awaited)          -- it went with what it waited for
  end)

  it("evaluates files of weights beside a training, in the order of their numbers, by a model without an Input", function()
    local function new(input)
      local model = flow.Sequential { flow.layers.Dense(1, { kernel_initializer = "ones" }) }
      if input then model:build { -1, 3 } end
      model:compile { loss = "mse" }
      return model
    end
    local writer = new(true)
    for _, number in ipairs { 1, 2, 10 } do
      writer.layers[1].kernel:assign(flow.full({ 3, 1 }, number))
      flow.io.makedirs(folder)
      writer:save_weights(("%s/m-%d.weights.h5"):format(folder, number))
    end
    local losses = {}
    local note = flow.callbacks.LambdaCallback { on_test_end = function(logs) losses[#losses + 1] = logs.loss end }
    local evaluator = flow.train.SidecarEvaluator { model = new(), data = { flow.ones { 4, 3 }, flow.zeros { 4, 1 } },
                                                    checkpoint_dir = folder, max_evaluations = 3, callbacks = { note } }
    assert.equal(3, evaluator:start())
    assert.same({ 9, 36, 900 }, losses)
    assert.same({}, warnings)
  end)

  it("keeps where generators of random numbers are", function()
    local generator, seeds = flow.random.Generator.from_seed(1), flow.random.SeedGenerator(2)
    local checkpoint = flow.train.Checkpoint { generator = generator, seeds = seeds }
    generator:normal { 2 }
    seeds:next()
    local path = checkpoint:write(folder .. "/random")
    local expected = { generator:normal({ 2 }):totable(), generator:normal({ 2 }):totable(), seeds:next(), seeds:next() }
    checkpoint:restore(path):assert_consumed()
    assert.same(expected, { generator:normal({ 2 }):totable(), generator:normal({ 2 }):totable(), seeds:next(), seeds:next() })
    local other, others = flow.random.Generator.from_seed(5), flow.random.SeedGenerator(6)
    flow.train.Checkpoint { generator = other, seeds = others }:restore(path)
    assert.same(expected, { other:normal({ 2 }):totable(), other:normal({ 2 }):totable(), others:next(), others:next() })
    assert.error_matches(function() other:set_state {} end, "takes what get_state gave")
  end)

  it("makes the folder again when it was removed between two saves", function()
    local v = flow.Variable(1)
    local checkpoint = flow.train.Checkpoint { v = v }
    for _, async in ipairs { false, true } do
      local manager = flow.train.CheckpointManager(checkpoint, folder .. "/a/b", { async = async })
      manager:save()
      manager:sync()
      flow.io.rmtree(folder)
      local path = manager:save()
      manager:sync()
      v:assign(7)
      checkpoint:restore(path)
      assert.equal(1, v:item())
      flow.io.rmtree(folder)
    end
    checkpoint:restore(checkpoint:write(folder .. "/c/written"))
    flow.io.rmtree(folder)
    checkpoint:restore(checkpoint:save(folder .. "/c/saved"))
  end)

  it("counts hours, steps and numbers as Keras does", function()
    local step = flow.Variable(0, { dtype = "int64" })
    local checkpoint = flow.train.Checkpoint { step = step }
    local options = { checkpoint_interval = 5, step_counter = step, checkpoint_name = "m" }
    local manager = flow.train.CheckpointManager(checkpoint, folder, options)
    assert.equal(folder .. "/m-1", manager:save())
    step:assign(4)
    assert.is_nil(manager:save())
    assert.equal(folder .. "/m-2", manager:save { check_interval = false })
    step:assign(9)
    assert.equal(folder .. "/m-30", manager:save(30))
    assert.equal(30, checkpoint.save_counter:item())
    local called = 0
    manager = flow.train.CheckpointManager(checkpoint, folder .. "/n", { init_fn = function() called = called + 1 end, max_to_keep = 1,
                                                                         keep_checkpoint_every_n_hours = 0 })
    assert.is_nil(manager:restore_or_initialize())
    assert.equal(1, called)
    manager:save()
    manager:save()
    assert.equal(1, #manager.checkpoints)
    assert.equal(3, #flow.io.listdir(folder .. "/n"))      -- the first is preserved: its hours are over
    assert.error_matches(function() flow.train.CheckpointManager(checkpoint, folder, { max_to_keep = 0 }) end, "max_to_keep")
  end)

  it("leaves everything as it was when a save fails", function()
    local v = flow.Variable(1)
    local checkpoint = flow.train.Checkpoint { v = v }
    local manager = flow.train.CheckpointManager(checkpoint, folder)
    manager:save()
    flow.io.makedirs(folder .. "/ckpt-2.safetensors/in the way")
    assert.error_matches(function() manager:save() end, "ckpt%-2")
    assert.equal(1, checkpoint.save_counter:item())
    assert.equal(folder .. "/ckpt-1", manager:restore_or_initialize())
  end)
end)

describe("state", function()
  it("keeps every number to the last bit, tensors, and keys that JSON does not have", function()
    local kept = {}
    local value = { a = 0.1 + 0.2, b = 1 / 3, c = { 1e308, -5e-324, 2 ^ 53 + 2, -0.0 }, d = { inf = math.huge, low = -math.huge },
                    e = { [0] = "x", [7] = 1 / 7, y = { true, false } }, f = {}, text = 'a "b"\n\195\164', bytes = "\0\255\n",
                    ["\255"] = 2, ["$odd"] = 1,
                    t = flow.tensor { 1, 2 } }
    local text = state.encode(value, function(t)
      kept[#kept + 1] = t
      return tostring(#kept)
    end)
    local back = state.decode(text, function(name) return kept[tonumber(name)] end)
    assert.same({ 1, 2 }, back.t:totable())
    value.t, back.t = nil, nil
    assert.same(value, back)
    assert.equal(-math.huge, 1 / back.c[4])
    local nan = state.decode(state.encode({ 0 / 0 }))[1]
    assert.is_true(nan ~= nan)
    assert.error_matches(function() state.encode({ f = print }, nil, "callback") end, "callback.f is a function")
  end)

  it("reads the folder's text as TensorFlow writes it", function()
    local place = support.folder()
    write(place .. "/checkpoint", 'model_checkpoint_path: "a\\"b\\303\\244-2"\nall_model_checkpoint_paths: "/abs/c-1"\n' ..
      "all_model_checkpoint_timestamps: 1700000000.5\nlast_preserved_timestamp: 3.5\n")
    local found = directory.read(place)
    assert.equal(place .. '/a"b\195\164-2', found.latest)
    assert.same({ "/abs/c-1" }, found.paths)
    assert.same({ 1700000000.5 }, found.times)
    assert.equal(3.5, found.preserved)
    flow.io.rmtree(place)
  end)

  it("gives checkpoints as they appear, until none comes for a while", function()
    local folder = support.folder() .. "/watched"
    local step = flow.Variable(0)
    local manager = flow.train.CheckpointManager(flow.train.Checkpoint { step = step }, folder)
    local seen, asked = {}, 0
    for path in flow.train.checkpoints_iterator(folder, { timeout = 0.02, timeout_fn = function()
      asked = asked + 1
      if asked == 2 then manager:save() end
      return asked == 4
    end }) do seen[#seen + 1] = path if #seen < 2 then manager:save() end end
    assert.same({ folder .. "/ckpt-1", folder .. "/ckpt-2" }, seen)
    assert.equal(4, asked)
    for path in flow.train.checkpoints_iterator(folder, 0, 0) do seen[#seen + 1] = path end
    assert.equal(3, #seen)
  end)
end)
