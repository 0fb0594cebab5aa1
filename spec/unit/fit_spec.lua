-- fit_spec.lua: fit, evaluate and predict over tensors: Keras' signature, what is printed, and the hot loop.
local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local layers = flow.layers
local message_of = support.message_of
local C = native.C

local function labels(list) return flow.tensor(list, { dtype = "int32" }) end

-- A linear model that starts from zero, and data with y = 1 x.
local function linear(options)
  local model = flow.Sequential { layers.Input { 1 }, layers.Dense(1, { use_bias = false, kernel_initializer = "zeros" }) }
  model:compile(options or { optimizer = flow.optimizers.SGD(0.1), loss = "mse", metrics = { "mae" } })
  return model
end
local x, y = flow.tensor { { 1 }, { 2 }, { 3 }, { 4 }, { 5 } }, flow.tensor { { 1 }, { 2 }, { 3 }, { 4 }, { 5 } }

local function classifier()
  local model = flow.Sequential { layers.Input { 4 }, layers.Dense(16, { activation = "relu" }), layers.Dense(3) }
  model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy(true), metrics = { "accuracy" } }
  return model
end

-- What f prints, with times made equal.
local function printed(f)
  local parts = {}
  flow.log.sink = function(_, text) parts[#parts + 1] = text end
  local ok, problem = pcall(f)
  flow.log.sink = nil
  if not ok then error(problem, 0) end
  return (table.concat(parts):gsub(" %d+s %- %d+[mu]?s/step", " Ts - T/step"))
end

describe("fit", function()
  it("averages the loss of an epoch over samples, the last smaller batch included", function()
    local model = linear { optimizer = flow.optimizers.SGD(0), loss = "mse", metrics = { "mae" } }
    local history = model:fit(x, y, { batch_size = 2, verbose = 0 })
    assert.same({ loss = { 11 }, mae = { 3 } }, history.history)
    assert.same({ 0 }, history.epoch)
    assert.equal(3, model.optimizer.iterations)
    assert.equal(history, model.history)
    assert.equal(1, model._traces)
  end)

  it("takes positions as Keras, and 32 as the batch size", function()
    local model = linear()
    assert.same({ 0, 1 }, model:fit(x, y, 2, 2, 0).epoch)
    assert.equal(6, model.optimizer.iterations)
    model:fit(flow.ones { 65, 1 }, flow.ones { 65, 1 }, { verbose = 0 })
    assert.equal(9, model.optimizer.iterations)
  end)

  it("takes epochs as the final index", function()
    local model = linear()
    assert.same({ 3, 4 }, model:fit(x, y, { initial_epoch = 3, epochs = 5, verbose = 0 }).epoch)
    assert.same({}, model:fit(x, y, { initial_epoch = 5, epochs = 5, verbose = 0 }).epoch)
  end)

  it("splits validation data off the end before it shuffles", function()
    local model = linear { optimizer = flow.optimizers.SGD(0), loss = "mse" }
    local history = model:fit(x, y, { validation_split = 0.4, verbose = 0 }).history
    assert.near((1 + 4 + 9) / 3, history.loss[1], 1e-5)
    assert.near((16 + 25) / 2, history.val_loss[1], 1e-5)
    assert.truthy(message_of(function() model:fit(x, y, { validation_split = 0.9 }) end):find("leaves one side empty", 1, true))
    assert.truthy(message_of(function() model:fit(x, y, { validation_split = 1 }) end):find("a number from 0 to below 1", 1, true))
  end)

  it("validates as often as asked", function()
    local model = linear()
    local how = { epochs = 4, verbose = 0, validation_data = { x, y }, validation_freq = 2 }
    assert.equal(2, #model:fit(x, y, how).history.val_loss)
    how.validation_freq = { 1, 2, 4 }
    local history = model:fit(x, y, how).history
    assert.equal(3, #history.val_loss)
    assert.equal(4, #history.loss)
    how = { verbose = 0, validation_data = { x, y, { 0, 0, 0, 0, 0 } } }
    assert.equal(0, model:fit(x, y, how).history.val_loss[1])
    model = linear { optimizer = flow.optimizers.SGD(0), loss = "mse" }
    how = { verbose = 0, validation_data = { x, y }, validation_batch_size = 2, validation_steps = 1 }
    assert.near(2.5, model:fit(x, y, how).history.val_loss[1], 1e-6)
  end)

  it("sees all rows in a new order every epoch, or in their order", function()
    flow.set_random_seed(5)
    local orders = {}
    local model = linear { optimizer = flow.optimizers.SGD(0), loss = "mse" }
    local seen
    local watch = flow.callbacks.LambdaCallback {
      on_epoch_begin = function() seen = {} orders[#orders + 1] = seen end,
      on_train_batch_end = function(batch, logs)      -- the running mean times the count, less what came before
        local total = logs.loss * (batch + 1)
        seen[#seen + 1] = math.floor(math.sqrt(total - (seen.total or 0)) + 0.5)
        seen.total = total
      end }
    model:fit(x, y, { batch_size = 1, epochs = 4, verbose = 0, callbacks = { watch } })
    local different = false
    for _, order in ipairs(orders) do
      local sorted = { unpack(order) }
      different = different or table.concat(order) ~= table.concat(orders[1])
      table.sort(sorted)
      assert.same({ 1, 2, 3, 4, 5 }, sorted)
    end
    assert.is_true(different)
    orders = {}
    model:fit(x, y, { batch_size = 1, epochs = 2, verbose = 0, shuffle = false, callbacks = { watch } })
    assert.same({ "12345", "12345" }, { table.concat(orders[1]), table.concat(orders[2]) })
  end)

  it("goes on where the epoch before ended with steps_per_epoch, and warns when data runs out", function()
    local model = linear { optimizer = flow.optimizers.SGD(0), loss = "mse" }
    local history, text
    text = printed(function()
      history = model:fit(x, y, { batch_size = 1, steps_per_epoch = 2, epochs = 4, shuffle = false, verbose = 0 }).history
    end)
    assert.same({ 2.5, 12.5, 25, 2.5 }, history.loss)
    assert.truthy(text:find("Your input ran out of data; interrupting training.", 1, true))
    model:fit(x, y, { steps_per_epoch = 2, verbose = 0 })      -- batches of ceil(5 / 2)
    assert.equal(7 + 2, model.optimizer.iterations)
  end)

  it("weighs classes and samples", function()
    local model = linear { optimizer = flow.optimizers.SGD(0), loss = "mse" }
    assert.near(11 + 2 * 25 / 5, model:fit(x, y, { verbose = 0, class_weight = { [5] = 3 } }).history.loss[1], 1e-5)
    assert.near(1 / 5, model:fit(x, y, { verbose = 0, sample_weight = { 1, 0, 0, 0, 0 } }).history.loss[1], 1e-6)
    assert.near(1 / 5, model:evaluate(x, y, { verbose = 0, sample_weight = { 1, 0, 0, 0, 0 } }).loss, 1e-6)
  end)

  it("gives the same losses for one seed, whatever the number of threads", function()
    local data, targets = flow.random.normal({ 100, 4 }, { seed = 3 }), {}
    for i = 1, 100 do targets[i] = i % 3 end
    local threads, found = flow.config.get_threads(), {}
    for count = 1, 2 do
      flow.config.set_threads(count)
      flow.set_random_seed(11)
      local model = flow.Sequential { layers.Input { 4 }, layers.Dense(64, { activation = "relu" }), layers.Dropout(0.3), layers.Dense(3) }
      model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy(true) }
      found[count] = model:fit(data, labels(targets), { epochs = 3, batch_size = 16, verbose = 0 }).history.loss
    end
    flow.config.set_threads(threads)
    assert.same(found[1], found[2])
  end)

  it("names the sample of a label that is out of range, shuffled or not, and changes nothing", function()
    local model = classifier()
    local list = {}
    for i = 1, 40 do list[i] = i % 3 end
    list[38] = 9
    for _, shuffle in ipairs { true, false } do
      local before = model:get_weights()
      local message = message_of(function()
        model:fit(flow.ones { 40, 4 }, labels(list), { batch_size = 40, shuffle = shuffle, verbose = 0 })
      end)
      assert.truthy(message:find("sparse_categorical_crossentropy: label 9 of row %d+ is outside 0%.%.2 %(sample 38 of the data, counted"))
      for i, value in ipairs(model:get_weights()) do assert.same(before[i]:totable(), value:totable()) end
      message_of(function() model:fit(flow.ones { 40, 4 }, labels(list), { batch_size = 7, shuffle = shuffle, verbose = 0 }) end)
      assert.truthy(message_of(function() model:evaluate(flow.ones { 40, 4 }, labels(list), { verbose = 0 }) end)
        :find("label 9 of row 6 is outside 0..2 (sample 38 of the data", 1, true))
    end
    model:fit(flow.ones { 2, 4 }, labels { 0, 1 }, { verbose = 0 })
  end)

  it("names what it was given wrongly", function()
    local model = linear()
    local function text(options) return message_of(function() model:fit(x, y, options) end) end
    assert.equal('model:fit: unknown option "epoch"; did you mean "epochs"?', text { epoch = 3 })
    assert.truthy(text { batch_size = 0 } :find("batch_size is a whole number from 1, got the number 0", 1, true))
    assert.truthy(text { epochs = 1.5 } :find("epochs is a whole number from 0, got the number 1.5", 1, true))
    assert.same({}, model:fit(x, y, { epochs = 0 }).epoch)
    assert.equal(1, #model:fit(x, y, { batch_size = 1e9, verbose = 0 }).history.loss)
    assert.truthy(text { initial_epoch = "a" } :find("initial_epoch is a whole number from 0", 1, true))
    assert.truthy(text { steps_per_epoch = -1 } :find("steps_per_epoch is a whole number from 1", 1, true))
    assert.truthy(text { verbose = "loud" } :find('verbose is 0, 1, 2 or "auto", got the string "loud"', 1, true))
    assert.truthy(text { shuffle = "batch" } :find("shuffle is true or false", 1, true))
    assert.truthy(text { validation_freq = 0 } :find("validation_freq is a whole number from 1", 1, true))
    assert.truthy(text { validation_data = { x } } :find("validation_data is { x, y }", 1, true))
    assert.truthy(text { validation_data = x } :find("validation_data is { x, y }", 1, true))
    assert.truthy(text { validation_data = { x, flow.ones { 3, 1 } } } :find("Data cardinality is ambiguous", 1, true))
    assert.truthy(text { callbacks = { 1 } } :find("callbacks: entry 1 is the number 1", 1, true))
    assert.truthy(text { class_weight = { a = 1 } } :find("class_weight is a table { [label] = weight } of numbers", 1, true))
    assert.truthy(text { class_weight = { [0] = 1, [1.5] = 2 } } :find("class_weight: a label is a whole number, got", 1, true))
    assert.truthy(text { sample_weight = 3 } :find("sample_weight is a tensor or list", 1, true))
    assert.truthy(text { sample_weight = { 1 } } :find("sample_weight sizes: 1", 1, true))
    assert.truthy(message_of(function() model:fit() end):find("fit: there is no data: x is nil", 1, true))
    assert.truthy(message_of(function() model:fit(flow.zeros { 0, 1 }, flow.zeros { 0, 1 }) end):find("the data has no samples", 1, true))
    assert.truthy(message_of(function() model:fit(3, y) end):find("x is a single number", 1, true))
    assert.truthy(message_of(function() model:evaluate(x, y, { step = 1 }) end):find('did you mean "steps"?', 1, true))
    assert.truthy(message_of(function() model:predict(x, { batch_size = 0 }) end):find("predict: batch_size", 1, true))
    assert.truthy(message_of(function() model:predict(flow.ones { 2, 3 }) end):find("3 features, but the layer was built for 1", 1, true))
    model:fit(x, y, { verbose = 0 })
  end)
end)

describe("evaluate and predict", function()
  it("run partial last batches and as many steps as asked", function()
    local model = linear { optimizer = flow.optimizers.SGD(0), loss = "mse" }
    assert.equal(11, model:evaluate(x, y, { batch_size = 2, verbose = 0 }).loss)
    assert.equal(2.5, model:evaluate(x, y, { batch_size = 2, steps = 1, verbose = 0 }).loss)
    model:set_weights { { { 2 } } }
    assert.same({ { 2 }, { 4 }, { 6 }, { 8 }, { 10 } }, model:predict(x, { batch_size = 2, verbose = 0 }):totable())
    assert.same({ { 2 }, { 4 } }, model:predict(x, { batch_size = 2, steps = 1, verbose = 0 }):totable())
    assert.same({ { 2 }, { 4 } }, model:predict({ { 1 }, { 2 } }, 32, 0):totable())
    assert.equal(2, model._traces)
  end)
end)

describe("as in Keras", function()
  local points, classes = flow.random.normal({ 10, 2 }, { seed = 1 }), flow.tensor { 0, 1, 1, 0, 1, 0, 0, 1, 1, 0 }
  local function binary(options)
    local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1, { activation = "sigmoid", name = "guess" }) }
    model:compile(options)
    return model
  end

  it("a class's weight is for training, not for the part that validates", function()
    local model = binary { optimizer = flow.optimizers.SGD(0), loss = "binary_crossentropy" }
    local how = { validation_split = 0.4, class_weight = { [0] = 1, [1] = 5 }, verbose = 0 }
    local history = model:fit(points, classes, how).history
    local function loss(first, last, weights)
      return model:evaluate(points[{ { first, last } }], classes[{ { first, last } }], { verbose = 0, sample_weight = weights }).loss
    end
    assert.near(loss(7, 10), history.val_loss[1], 1e-6)
    assert.near(loss(1, 6, flow.tensor { 1, 5, 5, 1, 5, 1 }), history.loss[1], 1e-6)
  end)

  it("a weighted metric, or a second one, with another's name has its own", function()
    local model = binary { loss = "binary_crossentropy", metrics = { "accuracy", flow.metrics.BinaryAccuracy { name = "accuracy" } },
      weighted_metrics = { "accuracy", "mse" } }
    local weights = flow.tensor { 1, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
    local found = model:evaluate(points, classes, { verbose = 0, sample_weight = weights })
    local right = model:predict(points, { verbose = 0 })[1][1]:item() < 0.5 and 1 or 0
    assert.equal(right, found.weighted_accuracy)
    assert.equal(found.accuracy, found.accuracy_1)
    assert.truthy(found.mse)
    local input = flow.Input { 2 }
    local function out(name) return flow.layers.Dense(1, { activation = "sigmoid", name = name })(input) end
    local two = flow.Model { inputs = input, outputs = { out "a", out "b" } }
    two:compile { loss = "mse", metrics = { { "mae" }, { "mae" } }, weighted_metrics = { {}, { "mae" } } }
    local names = {}
    for name in pairs(two:evaluate(points, { classes, classes }, { verbose = 0 })) do names[#names + 1] = name end
    table.sort(names)
    assert.same({ "a_loss", "a_mae", "b_loss", "b_mae", "b_weighted_mae", "loss" }, names)
  end)
end)

describe("what is printed", function()
  it("is a line an epoch where there is no terminal", function()
    for _, verbose in ipairs { 2, 1, "auto" } do
      local model = linear { optimizer = flow.optimizers.SGD(0), loss = "mse", metrics = { "mae" } }
      assert.equal("Epoch 1/2\n3/3 - Ts - T/step - loss: 11.0000 - mae: 3.0000 - val_loss: 1.0000 - val_mae: 1.0000\n" ..
                   "Epoch 2/2\n3/3 - Ts - T/step - loss: 11.0000 - mae: 3.0000 - val_loss: 1.0000 - val_mae: 1.0000\n",
        printed(function()
          model:fit(x, y, { batch_size = 2, epochs = 2, verbose = verbose, validation_data = { { { 1 } }, { { 1 } } } })
        end))
    end
  end)

  it("has no header for one epoch, and nothing is printed for 0", function()
    local model = linear { optimizer = flow.optimizers.SGD(0), loss = "mse" }
    assert.equal("1/1 - Ts - T/step - loss: 11.0000\n", printed(function() model:fit(x, y) end))
    assert.equal("1/1 - Ts - T/step - loss: 11.0000\n", printed(function() model:evaluate(x, y) end))
    assert.equal("3/3 - Ts - T/step\n", printed(function() model:predict(x, { batch_size = 2 }) end))
    assert.equal("", printed(function()
      model:fit(x, y, { verbose = 0, epochs = 2 })
      model:evaluate(x, y, { verbose = 0 })
      model:predict(x, { verbose = 0 })
    end))
  end)

  it("writes small values, 0 and NaN as Keras", function()
    local number = require("flow.train.progress").number
    assert.same({ "0.0010", "1.0000e-03", "0.0000e+00", "nan", "-2.0000e+00", "-2.0000" },
      { number(0.00101), number(0.001), number(0), number(0 / 0), number(-2), number(-2, true) })
  end)

  it("is a bar on a terminal", function()
    local bar
    local text = printed(function()
      bar = require("flow.train.progress").new(1, 4)
      bar:advance(1, 32)
      bar:draw { loss = 0.5, accuracy = 0.25 }
      bar:advance(3, 96)
      bar:finish { loss = 0.25 }
    end)
    assert.truthy(text:find("\27[1m1/4\27[0m \27[32m━━━━━\27[0m\27[37m━━━━━━━━━━━━━━━\27[0m", 1, true))
    assert.truthy(text:find("/s - accuracy: 0.2500 - loss: 0.5000", 1, true))
    assert.truthy(text:find("\27[1m4/4\27[0m \27[32m" .. ("━"):rep(20) .. "\27[0m", 1, true))
    assert.truthy(text:find(" - loss: 0.2500\n$"))
  end)
end)

describe("the loop over batches", function()
  local threads = flow.config.get_threads()
  after_each(function() flow.config.set_threads(threads) end)

  it("is left to C until somebody looks", function()
    -- Lines of train/batches.lua that a fit of this many batches runs.
    local function lines(count)
      local model, ran = classifier(), 0
      local data, targets = flow.ones { count, 4 }, flow.zeros({ count }, { dtype = "int32" })
      debug.sethook(function(_, line)
        local source = line and debug.getinfo(2, "S").source
        if source and source:find("flow/train/batches.lua", 1, true) then ran = ran + 1 end
      end, "l")
      jit.off()
      model:fit(data, targets, { batch_size = 1, verbose = 0 })
      jit.on()
      debug.sethook()
      return ran
    end
    local few, many = lines(20), lines(100)
    assert.is_true(few > 0)
    assert.is_true(many < 2 * few, ("%d lines for 100 batches, %d for 20"):format(many, few))      -- a slow machine makes one look more
  end)

  it("goes on for longer where the bar alone looks and steps are quick, never beyond what it was told", function()
    local executions = require "flow.train.batch_watch"
    local clock, now = C.flow_clock, 0
    finally(function() executions.clock = clock end)
    executions.clock = function() return now end
    local bar = { visible = function() return true end, due = function() return false end, advanced = {} }
    function bar:advance(count) table.insert(self.advanced, count) end
    local function watch(options)
      local list = { has = function(_, name) return options.hook == name end, call = function() end }
      return executions.watch { model = { _compiled = { steps_per_execution = options.size } }, what = "train", list = list, bar = bar,
                                count = 1000, logs = function() return {} end }
    end
    local function run(options)
      local w, batch, seen = watch(options), 0, {}
      for _, seconds in ipairs(options.seconds) do
        table.insert(seen, w.every())
        batch = batch + w.every()
        now = now + seconds
        w.after(batch - 1, 1)
      end
      return seen
    end
    assert.same({ 1, 2, 4, 8, 16, 16, 8, 4 }, run { size = 1, seconds = { 0, 0, 0, 0, 0, 1, 1, 1 } })
    assert.same({ 1, 2, 4, 8, 16, 16, 8, 4 }, bar.advanced)
    assert.same({ 3, 6, 12, 16, 8, 4, 3, 3 }, run { size = 3, seconds = { 0, 0, 0, 1, 1, 1, 1, 1 } })
    assert.same({ 40, 40 }, run { size = 40, seconds = { 0, 1 } })
    assert.same({ 1, 1, 1 }, run { size = 1, seconds = { 0, 0, 0 }, hook = "on_train_batch_end" })
  end)

  local function resident()
    local file = io.open("/proc/self/statm")
    if not file then return 0 end
    local pages = file:read("*a"):match("^%d+ (%d+)")
    file:close()
    return tonumber(pages) * 4096
  end

  it("makes nothing in a thousand steps", function()
    flow.config.set_threads(1)
    local model = classifier()
    local data, targets = flow.random.normal({ 1003, 4 }, { seed = 2 }), flow.zeros({ 1003 }, { dtype = "int32" })
    local function steps(count)
      model:fit(data, targets, { batch_size = 2, steps_per_epoch = count, verbose = 0, shuffle = false })
      collectgarbage() collectgarbage()
      return C.flow_live_bytes()
    end
    steps(10)
    local live, before = steps(10), C.flow_allocation_count()
    steps(10)
    local few = C.flow_allocation_count() - before
    local memory = resident()
    before = C.flow_allocation_count()
    assert.equal(live, steps(500))
    assert.equal(few, C.flow_allocation_count() - before)      -- of the call itself; none by its 490 further steps
    assert.equal(live, steps(500))
    assert.is_true(resident() - memory < 4 * 2 ^ 20)
    assert.equal(1, model._traces)
  end)
end)
