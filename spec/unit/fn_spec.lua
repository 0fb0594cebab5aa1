-- fn_spec.lua: traced functions: when they are traced again, what a plan may not do, and that results equal eager ones.
local support = require "spec.support.init"
local flow = require "flow"
local message_of = support.message_of

-- A traced version of f and a function that tells how often f ran.
local function counted(f)
  local calls = 0
  return flow.fn(function(...)
    calls = calls + 1
    return f(...)
  end), function() return calls end
end

describe("flow.fn", function()
  it("runs Lua once for a signature", function()
    local f, calls = counted(function(a, b) return a * b + 1 end)
    for i = 1, 4 do assert.same({ 2 * i + 1, 3 * i + 1 }, f(flow.tensor { 2, 3 }, flow.full({ 2 }, i)):totable()) end
    assert.equal(1, calls())
  end)

  it("takes any number of rows with one trace", function()
    local f, calls = counted(function(x) return (x * 2):sum(2), x:sum() end)
    for _, rows in ipairs { 4, 2, 1, 9, 4 } do
      local sums, all = f(flow.ones { rows, 3 })
      assert.same({ rows }, sums.shape)
      assert.equal(6, sums[-1]:item())
      assert.equal(3 * rows, all:item())
    end
    assert.equal(1, calls())
  end)

  it("is traced again for other shapes, dtypes, numbers and trainable sets", function()
    local v = flow.Variable(1)
    local f, calls = counted(function(x, k) return x * k * v end)
    f(flow.ones { 2, 3 }, 2)
    f(flow.ones { 2, 4 }, 2)
    assert.equal(2, calls())
    assert.equal("float64", f(flow.ones({ 2, 4 }, { dtype = "float64" }), 2).dtype)
    assert.equal(3, calls())
    assert.equal(5, f(flow.ones { 2, 4 }, 5)[{ 1, 1 }]:item())
    assert.equal(4, calls())
    v.trainable = false
    f(flow.ones { 2, 4 }, 5)
    assert.equal(5, calls())
    f(flow.ones { 2, 4 }, 5)
    assert.equal(5, calls())
  end)

  it("pins the rows when the function reads them", function()
    local f, calls = counted(function(x) return x:reshape { x.shape[1] * 3 } end)
    assert.same({ 6 }, f(flow.ones { 2, 3 }).shape)
    assert.same({ 12 }, f(flow.ones { 4, 3 }).shape)
    local before = calls()
    assert.same({ 6 }, f(flow.ones { 2, 3 }).shape)
    assert.equal(before, calls())
  end)

  it("keeps the other dimensions and the rank readable", function()
    local rank, columns, count
    local f = flow.fn(function(x)
      rank, columns, count = #x.shape, x.shape[2], x.rank
      return x
    end)
    f(flow.ones { 5, 7 })
    assert.same({ 2, 7, 2 }, { rank, columns, count })
  end)

  it("takes and returns nested tables", function()
    local f = flow.fn(function(batch) return { sum = batch.x + batch.y[1], kept = "text" }, 3 end)
    local result, number = f { x = flow.tensor { 1, 2 }, y = { flow.tensor { 10, 20 } } }
    assert.same({ 11, 22 }, result.sum:totable())
    assert.equal("text", result.kept)
    assert.equal(3, number)
  end)

  it("reads variables as they are at each run, and writes them", function()
    local v = flow.Variable { 1, 1 }
    local f, calls = counted(function(x)
      v:assign_add(x)
      return v * 10
    end)
    assert.same({ 20, 20 }, f(flow.ones { 2 }):totable())
    v:assign(5)
    assert.same({ 60, 60 }, f(flow.ones { 2 }):totable())
    assert.same({ 6, 6 }, v:totable())
    local before = calls()
    f(flow.ones { 2 })
    assert.equal(before, calls())
  end)

  it("holds a whole training step", function()
    local w = flow.Variable { { 0 }, { 0 } }
    local x = flow.tensor { { 1, 0 }, { 0, 1 }, { 1, 1 } }
    local y = flow.tensor { { 2 }, { -1 }, { 1 } }
    local step, calls = counted(function(inputs, targets)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return (inputs:matmul(w) - targets):square():mean() end)
      w:assign_sub(tape:gradient(loss, w) * 0.5)
      return loss
    end)
    local first, last = step(x, y):item(), nil
    for _ = 1, 60 do last = step(x, y):item() end
    assert.is_true(math.abs(first - 2) < 1e-5)
    assert.is_true(last < 1e-6)
    assert.is_true(math.abs(w:totable()[1][1] - 2) < 1e-2)
    assert.equal(1, calls())
  end)

  it("draws new numbers in every run", function()
    local f = flow.fn(function(x) return x + flow.random.normal { 3 } end)
    local a, b = f(flow.zeros { 3 }), f(flow.zeros { 3 })
    assert.are_not.same(a:totable(), b:totable())
  end)

  it("gives the gradients of a convolution whose input is scaled, which the plan does on the weights", function()
    local layer = flow.layers.Conv2D(4, 3, { padding = "same" })
    local x = flow.random.normal({ 2, 6, 6, 3 }, { seed = 1 })
    local function gradients(input)
      local tape = flow.GradientTape()
      tape:watch(input)
      local loss = tape:record(function() return layer(input * 0.25):square():sum() end)
      local dx, dw, db = unpack(tape:gradient(loss, { input, layer.kernel, layer.bias }))
      return { loss, dx, dw, db }
    end
    layer(x)
    local eager, traced = gradients(x), flow.fn(gradients)(x)
    for i = 1, 4 do assert.is_true((eager[i] - traced[i]):abs():max():item() < 1e-4 * eager[i]:abs():max():item()) end
  end)

  it("is called as it is inside another trace and while a tape records", function()
    local inner, calls = counted(function(x) return x * x end)
    local outer = flow.fn(function(x) return inner(x) + 1 end)
    assert.equal(10, outer(flow.tensor(3)):item())
    assert.equal(1, calls())
    local tape, x = flow.GradientTape(), flow.tensor(3)
    tape:watch(x)
    local y = tape:record(function() return inner(x) end)
    assert.equal(6, tape:gradient(y, x):item())
    assert.equal(2, calls())
  end)

  it("takes a new element from an iterator at each call", function()
    local twice = flow.fn(function(iterator) return iterator:next() * 2 end)
    local iterator = flow.data.Dataset.range(4):iter()
    local seen = {}
    for i = 1, 4 do seen[i] = twice(iterator):item() end
    assert.same({ 0, 2, 4, 6 }, seen)

    local total = flow.fn(function(dataset)
      local sum = 0
      for x in dataset:iter() do sum = sum + x end
      return sum
    end)
    assert.equal(6, total(flow.data.Dataset.range(4)):item())
    assert.equal(10, total(flow.data.Dataset.range(5)):item())

    local strategy = flow.distribute.OneDeviceStrategy "cpu:0"
    local batches = strategy:experimental_distribute_dataset(flow.data.Dataset.range(6):batch(2)):iter()
    local step = flow.fn(function(per_replica)
      return strategy:reduce("sum", strategy:run(function(x) return x:sum() end, { per_replica:next() }))
    end)
    seen = {}
    for i = 1, 3 do seen[i] = step(batches):item() end
    assert.same({ 1, 5, 9 }, seen)

    local Reading = flow.Model:extend "Reading"
    function Reading:train_step() return { loss = (iterator:get_next() * 0):sum() } end
    iterator = flow.data.Dataset.range(4):iter()
    local model = Reading()
    model:compile { optimizer = "sgd" }
    local text = message_of(function() model:fit(flow.ones { 4, 1 }, { verbose = 0 }) end)
    assert.truthy(text:find("give the element to the function as an argument", 1, true), text)
  end)

  it("keeps eight plans and says what makes it trace again", function()
    local log, warnings = flow.log, {}
    log.sink = function(level, text) warnings[#warnings + 1] = level .. ": " .. text end
    local f, calls = counted(function(x, k) return x * k end)
    for k = 1, 9 do f(flow.ones { 2 }, k) end
    log.sink = nil
    assert.equal(9, calls())
    f(flow.ones { 2 }, 9)
    assert.equal(9, calls())
    f(flow.ones { 2 }, 1)
    assert.equal(10, calls())
    assert.truthy(warnings[1]:find("^warning: flow%.fn %(.*fn_spec%.lua:%d+%): traced 6 times; argument 2 is 6, it was 5%."), warnings[1])
  end)

  it("releases its plans on close", function()
    local f, calls = counted(function(x) return x + 1 end)
    f(flow.ones { 2 })
    assert.truthy(f:describe():find("add", 1, true))
    f:close()
    assert.equal("", f:describe())
    f(flow.ones { 2 })
    assert.equal(2, calls())
  end)
end)

describe("a traced tensor", function()
  local function in_trace(body)
    return message_of(flow.fn(function(x)
      body(x)
      return x
    end), flow.ones { 2, 2 })
  end

  it("has no value", function()
    for what, body in pairs {
      ["item()"] = function(x) return x:sum():item() end,
      ["totable()"] = function(x) return x:totable() end,
      ["data()"] = function(x) return x:data() end,
      ["assigning an element"] = function(x) x[1] = 0 end,
    } do
      local text = in_trace(body)
      local start = what .. ": this tensor has no value while f is traced ("
      assert.equal(start, text:sub(1, #start))
      assert.truthy(text:find("fn_spec%.lua:%d+%): use flow%.where, or run it eagerly$"), text)
    end
  end)

  it("prints its shape with None and refuses to be used after its trace", function()
    local kept, text
    local f = flow.fn(function(x)
      kept, text = x, tostring(x)
      return x
    end)
    f(flow.ones { 2, 3 })
    assert.equal("Tensor float32 {None, 3} symbolic", text)
    assert.truthy(message_of(function() return kept + 1 end):find("after the trace", 1, true))
    assert.truthy(message_of(function() f(kept) end):find("has no value", 1, true))
  end)

  it("leaves no trace open when the function fails", function()
    local native = require "flow.ffi"
    local ok, message = pcall(flow.fn(function() error("my own", 0) end), flow.ones { 1 })
    assert.is_false(ok)
    assert.equal("my own", message)
    assert.equal(0, native.C.flow_trace_depth(native.context))
    assert.equal(2, (flow.ones({ 1 }) + 1):item())
  end)

  it("raises an error of the function itself, also one that a second trace would not meet", function()
    local calls = 0
    local function once(x)
      calls = calls + 1
      if calls == 1 then error("the first call", 0) end
      return x + 1
    end
    local f, x = flow.fn(once), flow.ones { 3 }
    assert.same({ false, "the first call" }, { pcall(f, x) })
    assert.equal(1, calls)
    assert.equal(6, f(x):sum():item())

    calls = 0
    local thrown = {}
    local g = flow.fn(function(v)
      calls = calls + 1
      if calls == 1 then error(thrown) end
      return v
    end)
    assert.same({ false, thrown }, { pcall(g, x) })

    calls = 0
    local Once = flow.Model:extend "Once"
    function Once:call(v) return once(v) end
    local model = Once()
    model:compile { loss = "mse", optimizer = "sgd" }
    model._all_built = true
    assert.same({ false, "the first call" }, { pcall(model.predict, model, x:reshape(3, 1), { verbose = 0 }) })
    assert.equal(1, calls)
  end)

  it("names itself if it calls itself without end, which tail calls did for ever", function()
    local f, g
    f = flow.fn(function(n) return g(n - 1) end)
    g = flow.fn(function(n) return f(n - 1) end)
    assert.matches("flow.fn %(.*fn_spec.lua:%d+%) calls itself without end while it is traced",
      message_of(function() f(flow.tensor(5)) end))
    local countdown
    countdown = flow.fn(function(n) return n > 0 and countdown(n - 1) or flow.tensor(7) end)
    assert.equal(7, countdown(300):item())
  end)

  it("takes what its input_signature says, and makes tensors of numbers and lists", function()
    local Spec, wide = flow.TensorSpec, flow.ones { 2, 3 }
    local double = flow.fn(function(x) return x * 2 end, { input_signature = { Spec({ -1, 3 }, "float32") } })
    assert.same({ { 2, 4, 6 } }, double({ { 1, 2, 3 } }):totable())
    for _, rows in ipairs { 0, 1, 5 } do assert.equal(rows, double(flow.ones { rows, 3 }).shape[1]) end
    assert.equal(12, double(flow.Variable(wide)):sum():item())
    assert.equal(12, flow.fn(function(x) return double(x):sum() end)(wide):item())
    assert.equal(12, flow.distribute.MirroredStrategy():run(double, { wide }):sum():item())
    local w, tape = flow.Variable(wide), flow.GradientTape()
    assert.same({ { 2, 2, 2 }, { 2, 2, 2 } }, tape:gradient(tape:record(function() return double(w):sum() end), w):totable())
    for text, given in pairs {
      ["argument 1 is float64 {2, 3}, input_signature says float32 {None, 3}"] = { wide:to "float64" },
      ["argument 1 is float32 {3}, input_signature says float32 {None, 3}"] = { flow.ones { 3 } },
      ["argument 1 is float32 {2, 4}"] = { flow.ones { 2, 4 } }, ["takes 1 arguments, as its input_signature says, got 2"] = { wide, 2 },
      ["takes 1 arguments, as its input_signature says, got 0"] = {}, ["argument 1 is the string \"a\""] = { "a" },
    } do
      local message = message_of(function() double(unpack(given)) end)
      assert.truthy(message:find(text, 1, true), message)
    end
    assert.truthy(message_of(function() flow.fn(function(x) return double(x) end)(flow.ones { 2, 4 }) end):find("float32 {2, 4}", 1, true))
  end)

  it("has an input_signature of tables, and refuses other values", function()
    local Spec = flow.TensorSpec
    local f = flow.fn(function(batch, k) return batch.x + batch.y[1] * k end,
      { input_signature = { { x = Spec { 2 }, y = { Spec({}, "int32") } }, Spec({}, "float32") } })
    assert.same({ 7, 8 }, f({ x = { 1, 2 }, y = { 3 } }, 2):totable())
    for text, given in pairs { ['argument 1: input_signature has no entry "z"'] = { x = { 1, 2 }, y = { 3 }, z = 1 },
      ["argument 1[y] is a table, as input_signature says, got nil"] = { x = { 1, 2 } },
      ["argument 1[x] is float32 {3}, input_signature says float32 {2}"] = { x = { 1, 2, 3 }, y = { 3 } } } do
      local message = message_of(function() f(given, 2) end)
      assert.truthy(message:find(text, 1, true), message)
    end
    for text, specs in pairs { ["input_signature is a list, got the number 3"] = 3, ["with an entry for each argument"] = Spec { 3 },
      ["input_signature[1] is flow.TensorSpec(shape, dtype)"] = { 3 }, ["size 1 is a whole number, or -1"] = { Spec { 1.5 } },
      ['unknown dtype "floaty"'] = { Spec({}, "floaty") }, ["entry 1 of the list is nil"] = { nil, Spec {} } } do
      local message = message_of(function() flow.fn(print, { input_signature = specs }) end)
      assert.truthy(message:find(text, 1, true), message)
    end
  end)
end)
