-- coroutines_spec.lua: tapes, traces and scopes belong to the coroutine that opened them. Random programs that yield anywhere compute,
-- interleaved, what each computes by itself. FLOW_CASES=10000 tries this many sets of programs.
local flow = require "flow"
local native = require "flow.ffi"
local layers = flow.layers

local FIRST, LAST = (require "spec.support.case_numbers")(60)

-- random(a, b): whole numbers of a separate sequence (Park and Miller, 1988).
local function generator(seed)
  local state = seed * 7919 % 2147483647
  return function(a, b)
    state = state * 16807 % 2147483647
    return a + math.floor(state / 2147483647 * (b - a + 1))
  end
end

local strategies = {}
for i = 1, 3 do strategies[i] = flow.distribute.MirroredStrategy { devices = { "cpu:0" } } end

-- A layer in Lua that runs the rest of a program when it is called, and notes what it is told.
local Inner = layers.Layer:extend("Inner")
function Inner:call(x, options)
  self.note("training " .. tostring(options.training))
  return x
end

local Outer = layers.Layer:extend("Outer")
function Outer:build() self.gain = self:add_weight { name = "gain", shape = {}, initializer = "ones" } end
function Outer:call(x)
  local y = self.inner(x) * self.gain
  y = self.rest(y)
  self.note("reads " .. self.gain:value().dtype)
  return self.inner(y)
end

local program      -- below

local function random_body(random, depth)
  return program(random, depth + 1, random(0, 3))
end

-- A list of actions: { what, number, body }.
local KINDS = { "add", "multiply", "yield", "yield", "where", "tape", "scope", "traced", "layer", "fail", "device" }
function program(random, depth, length)
  local list = {}
  for i = 1, length do
    local kind = KINDS[random(1, depth > 3 and 5 or #KINDS)]
    list[i] = { kind, random(1, 3), depth <= 3 and random_body(random, depth) or {} }
  end
  return list
end

local run
local actions = {}

function actions.add(x, n, _, self) return x + self.variable * n end
function actions.multiply(x, n, _, self) return x * self.variable / n end
function actions.yield(x, n, _, self)
  for _ = 1, n do self.yield() end
  return x
end
function actions.where(x, _, _, self)
  local current = flow.distribute.get_strategy()
  local name = "none"
  for i, strategy in ipairs(strategies) do name = strategy == current and tostring(i) or name end
  self.note(("strategy %s, traces %d, device %d"):format(name, native.C.flow_trace_depth(native.context),
    require("flow.devices").current()))
  return x
end
function actions.tape(x, _, body, self)
  local tape = flow.GradientTape()
  local y = tape:record(function() return run(body, x + self.variable * self.variable, self) end)
  local gradient = tape:gradient(y, self.variable)
  if native.C.flow_trace_depth(native.context) == 0 then self.note("gradient " .. gradient:item()) end
  return y + gradient
end
function actions.scope(x, n, body, self)
  local open = flow.distribute.get_strategy()
  for _, strategy in ipairs(strategies) do
    if strategy == open then n = _ end      -- scopes of two strategies do not mix
  end
  return strategies[n]:scope(function() return run(body, x, self) end)
end
function actions.traced(x, _, body, self)
  return flow.fn(function(y) return run(body, y * 2, self) end)(x)
end
function actions.layer(x, n, body, self)
  local layer = Outer { dtype = ({ "float32", "mixed_bfloat16", "mixed_float16" })[n] }
  layer.inner, layer.note = Inner(), self.note
  layer.inner.note = self.note
  layer.rest = function(y) return run(body, y:cast("float32"), self) end
  return layer(x, { training = n > 1 }):cast("float32")
end
function actions.fail(x, _, body, self)
  local y
  local ok, problem = pcall(function()
    flow.GradientTape():record(function()
      strategies[1]:scope(function()
        y = run(body, x, self)
        error("on purpose", 0)
      end)
    end)
  end)
  if not tostring(problem):find("Mixing", 1, true) then assert(not ok and problem == "on purpose", problem) end
  if ok or native.C.flow_trace_depth(native.context) > 0 then return x end
  return y and x + y:item() * 0 or x
end
function actions.device(x, _, body, self)
  return flow.device("cpu:0", function() return run(body, x, self) end)
end

function run(list, x, self)
  for _, action in ipairs(list) do x = actions[action[1]](x, action[2], action[3], self) end
  return x
end

-- A program with what it notes on the way; body() runs it.
local function task(list, yield)
  local self = { notes = {}, variable = flow.Variable(1.5), yield = yield }
  function self.note(text) self.notes[#self.notes + 1] = text end
  function self.body()
    self.note("result " .. run(list, flow.tensor(0.5), self):item())
  end
  return self
end

local function assert_closed()
  assert.equal(0, native.C.flow_tape_depth(native.context))
  assert.equal(0, native.C.flow_trace_depth(native.context))
  assert.equal(-1, require("flow.devices").current())
  assert.is_false(flow.distribute.has_strategy())
end

describe("coroutines", function()
  it("that take turns compute what each computes by itself", function()
    for case = FIRST, LAST do
      local random = generator(case)
      local count, alone, together, left = random(2, 5), {}, {}, {}
      for i = 1, count do
        local list = program(random, 1, random(2, 7))
        alone[i] = task(list, function() end)
        together[i] = task(list, coroutine.yield)
      end
      for i = 1, count do alone[i].body() end
      for i = 1, count do left[i] = { coroutine.create(together[i].body), together[i], alone[i] } end
      while #left > 0 do
        local at = random(1, #left)
        local co, self, expected = unpack(left[at])
        local ok, problem = coroutine.resume(co)
        assert.truthy(ok, ("case %d: %s"):format(case, tostring(problem)))
        local done = coroutine.status(co) == "dead"
        for k, text in ipairs(self.notes) do assert.equal(expected.notes[k], text, ("case %d, note %d"):format(case, k)) end
        if done then assert.equal(#expected.notes, #self.notes, ("case %d"):format(case)) end
        if done or random(1, 40) == 1 then table.remove(left, at) end      -- some are never resumed again
        if random(1, 20) == 1 then collectgarbage() end
      end
      assert_closed()
    end
  end)

  it("keep nothing of tapes that are interleaved, or whose coroutine is dropped", function()
    local variable = flow.Variable(flow.ones { 256, 256 })
    local function training()
      for _ = 1, 3 do
        local tape = flow.GradientTape()
        local loss = tape:record(function()
          local y = variable * 2
          coroutine.yield()
          y = y * y
          coroutine.yield()
          return y:sum()
        end)
        assert.equal(8 * 256 * 256, tape:gradient(loss, variable):sum():item())
      end
    end
    local before
    local function play()
      local list = {}
      for i = 1, 4 do list[i] = coroutine.create(training) end
      for turn = 1, 12 do
        for i, co in ipairs(list) do
          if coroutine.status(co) ~= "dead" and not (i == 4 and turn > 2) then assert(coroutine.resume(co)) end
        end
        flow.ones { 256, 256 } :sum()
      end
    end
    for round = 1, 30 do
      play()      -- the fourth one is left in its first tape
      collectgarbage()
      collectgarbage()
      before = before or native.C.flow_live_bytes()
      assert.equal(before, native.C.flow_live_bytes(), "round " .. round)
    end
    assert_closed()
  end)

  it("that nginx ends anywhere and uses again leave nothing to the next request", function()
    local ffi = require "ffi"
    pcall(ffi.cdef, [[
      void lua_resetthread(struct lua_State *, struct lua_State *);
      int luaL_loadstring(struct lua_State *, const char *);]])
    if not pcall(function() return ffi.C.lua_resetthread end) then pending "this LuaJIT cannot reset a coroutine" return end
    local function state_of(co) return ffi.cast("struct lua_State *", tonumber(tostring(co):match "0x(%x+)", 16)) end
    local variable, strategy = flow.Variable(2), strategies[1]
    local function request()
      assert.not_equal(strategy, flow.distribute.get_strategy())
      local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
      model:compile { optimizer = "sgd", loss = "mse" }
      model:fit(flow.ones { 4, 2 }, flow.ones { 4, 1 }, { verbose = 0 })
      local tape = flow.GradientTape()
      local y = tape:record(function() return variable * variable end)
      assert.equal(4, tape:gradient(y, variable):item())
      strategy.scope(function() flow.GradientTape():record(function() coroutine.yield(variable * 2) end) end)
    end
    package.loaded["spec.request"] = request
    local function serve(recycled, other)
      for _ = 1, 20 do
        assert(coroutine.resume(recycled))
        ffi.C.lua_resetthread(state_of(other), state_of(recycled))
        assert.equal(0, ffi.C.luaL_loadstring(state_of(recycled), "return package.loaded['spec.request']()"))
      end
    end
    serve(coroutine.create(request), coroutine.create(request))
    package.loaded["spec.request"] = nil
    collectgarbage()
    assert_closed()
  end)

  it("make models in the strategy of their own scope alone", function()
    local function make(strategy)
      return coroutine.wrap(function()
        return strategy:scope(function()
          coroutine.yield()
          return flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
        end)
      end)
    end
    local first, second = make(strategies[1]), make(strategies[2])
    first() second()
    local outside = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
    local a, b = first(), second()
    assert.equal(strategies[1], a._placement.strategy)
    assert.equal(strategies[2], b._placement.strategy)
    assert.falsy(outside._placement)
  end)
end)
