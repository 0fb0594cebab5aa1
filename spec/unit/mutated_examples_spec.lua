-- mutated_examples_spec.lua: the examples of the reference with one expression replaced by something strange. What they raise is at a line
-- of the example and in the library's words; a small model trains after them. FLOW_CASES=100000 tries more, FLOW_SEED says which.
local support = require "spec.support.init"
local mutants = require "spec.support.mutants"
local ffi = require "ffi"
local flow = require "flow"
local reference = require "flow.reference"
local _ = flow.help      -- the walk begins at flow

ffi.cdef "char *getcwd(char *where, size_t size); int chdir(const char *path);"

local cases, state = tonumber(os.getenv("FLOW_CASES")) or 1200, tonumber(os.getenv("FLOW_SEED")) or 1
local function random(n)      -- 1 .. n: Park and Miller's generator, the same everywhere
  state = state * 48271 % 2147483647
  return state % n + 1
end

local STRANGE = { "nil", "false", "true", "-1", "0", "3", "1.5", "1e300", "0 / 0", "-2 ^ 63", "''", "'a\\0b'", "('x'):rep(100000)",
  "'/dev/null/x'", "{}", "{ 1, nil, 3 }", "{ 'a', 2 }", "{ { 1 }, { 2, 3 } }", "cyclic", "print", "function() error('own', 0) end",
  "function() coroutine.yield(1) end", "coroutine.create(print)", "flow.zeros { 2, 5 }", "flow.zeros {}", "flow.zeros { 0, 5 }",
  "flow.zeros({ 3 }, { dtype = 'int32' })", "flow.zeros({ 2, 3, 4, 1 }, { dtype = 'bool' })", "flow.tensor { 'a', 'b' }", "closed()", "5LL",
  "io.stdout", "setmetatable({}, { __index = function() error('own', 0) end })", "flow.layers.Dense(2)", "flow.data.Dataset.range(3)",
  "flow.Variable(flow.zeros { 2 })", "flow.Input { 3 }", "flow.optimizers.Adam()", "flow.layers.Dense", "flow.random", "{ no_such = 1 }",
  "{ -1 }", "{ 0 }", "{ 1e300 }", "function(...) return ... end", "function() end", "function() return 'x' end", "flow.metrics.Mean()",
  "flow.losses.Huber()", "flow.GradientTape()" }

-- What reaches out of the process, or has no end where a number is large.
local OUTSIDE = { "repl", "^flow%.log", "exit", "preempt", "jobs", "Cluster", "MultiWorker", "ParameterServer", "Sidecar", "counter" }
local function is_tried(item)
  for _, pattern in ipairs(OUTSIDE) do
    if item.name:find(pattern) then return false end
  end
  -- What a script's function tail-calls has the place of whoever called that function.
  return item.example and not item.example:find("return coroutine.wrap", 1, true)
end

local cyclic = {}
cyclic[1] = cyclic
local function nothing() end
local environment = setmetatable({ flow = flow, layers = flow.layers, cyclic = cyclic, print = nothing, closed = function()
  local x = flow.ones { 2, 3 }
  x:close()
  return x
end }, { __index = _G })

-- What is wrong with a message, or nil. What Lua says of the example's own lines is its own affair.
local function fault(message)
  if type(message) ~= "string" then return "is not a text" end
  if message:find "%f[%w]own$" then return nil end      -- what the strange function itself says
  if message:find("lua/flow/[%w_/]+%.lua:%d") then return "is at a line of the library" end
  if not message:find "^example:%d+: " then return "has no place" end
  if #message > 5000 then return "is long" end
end

describe("examples with a strange value in one place", function()
  it("go well, or say what is wrong at their own line", function()
    local texts, found = {}, {}
    for _, item in ipairs(reference.all()) do
      local places = is_tried(item) and mutants.places(item.example)
      if places and #places > 0 then texts[#texts + 1] = { item.name, item.example, places } end
    end
    assert.is_true(#texts > 1000, #texts)
    local sink, here = flow.log.sink, ffi.string(ffi.C.getcwd(ffi.new("char[4096]"), 4096))
    assert.equal(0, ffi.C.chdir(support.folder()))      -- examples write files
    flow.log.sink = nothing
    local ran = 0
    for case = 1, cases do
      local name, example, places = unpack(texts[random(#texts)])
      local text = mutants.replaced(example, places[random(#places)], STRANGE[random(#STRANGE)])
      if os.getenv "FLOW_SHOW_CASES" then io.stderr:write(case, " ", name, "\n", text, "\n") end
      local chunk = loadstring(text, "=example")
      if chunk then
        ran = ran + 1
        local thread = coroutine.create(setfenv(chunk, environment))
        local ok, message = coroutine.resume(thread)
        local wrong = not ok and fault(message)
        if wrong then found[#found + 1] = ("case %d, %s:\n%s\n%s: %s"):format(case, name, text, wrong, tostring(message):sub(1, 300)) end
      end
    end
    flow.log.sink = sink
    assert.equal(0, ffi.C.chdir(here))
    assert.equal("", table.concat(found, "\n\n"))
    assert.is_true(ran > cases * 0.9, ran)
    local model = flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(1) }
    model:compile { optimizer = "sgd", loss = "mse" }
    model:fit(flow.ones { 8, 3 }, flow.ones { 8, 1 }, { verbose = 0 })
    assert.same({ 2, 1 }, { unpack(model:predict(flow.ones { 2, 3 }, { verbose = 0 }).shape) })
  end)
end)
