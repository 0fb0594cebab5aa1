-- load_again.lua TASK STEP: an error is raised in the middle of each STEP-th module that a task loads, each time in another process; then
-- the task is done again, in the same process. Prints the modules after which it fails, then "done" and how many were tried.
local ffi = require "ffi"
ffi.cdef "int fork(void); int waitpid(int pid, int *status, int options); void _exit(int code);"
jit.off()      -- compiled code calls no hooks
local flow = require "flow"

local TASKS = {
  data = function()
    for x in flow.data.Dataset.range(4):map(function(x) return x * 2 end):batch(2):iter() do assert(x:ge(0):all():item()) end
  end,
  fit = function()
    local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
    model:compile { loss = "mse", optimizer = "adam", metrics = { "mae" } }
    model:fit(flow.ones { 4, 2 }, flow.ones { 4, 1 }, { verbose = 0, callbacks = { flow.callbacks.EarlyStopping { monitor = "loss" } } })
    flow.models.model_from_json(model:to_json()):predict(flow.ones { 1, 2 }, { verbose = 0 })
  end,
  others = function()
    assert(flow.einsum("ij,jk->ik", flow.ones { 2, 2 }, flow.ones { 2, 2 }):sum():item() == 8)
    flow.distribute.MirroredStrategy():run(function(x) return x * 2 end, { flow.ones { 2 } })
    flow.utils.to_categorical { 1, 2 }
    flow.train.Checkpoint { v = flow.Variable(1) }
    flow.keras.ops.add(1, 2)
    flow.text.Tokenizer({ a = 0, b = 1 }, {})
  end,
}

-- Raises in the main chunk of the module that is loaded as the number-th, or of one inside of it, after some instructions.
local function cut(number)
  local found, left = 0, 3
  debug.sethook(function(event)
    local about = debug.getinfo(2, "S")
    if about.what ~= "main" or not about.source:find "lua/flow/" then return end
    if event == "call" then
      found = found + 1
    elseif found >= number then
      left = left - 1
      if left > 0 then return end
      debug.sethook()
      error("cut in " .. about.short_src, 0)
    end
  end, "c", 7)
end

require "flow.classes.loading"      -- it looks after the others
local task, status, number, tried = TASKS[arg[1]], ffi.new("int[1]"), 1, 0
repeat
  local pid = ffi.C.fork()
  if pid == 0 then
    cut(number)
    local ok, problem = pcall(task)
    debug.sethook()
    if ok then ffi.C._exit(7) end
    local well, later = pcall(task)
    if not well then io.stderr:write(tostring(problem), ": ", tostring(later), "\n") end
    ffi.C._exit(0)
  end
  ffi.C.waitpid(pid, status, 0)
  number, tried = number + tonumber(arg[2]), tried + 1
until status[0] ~= 0
print(status[0] == 7 * 256 and "done" or "ended", tried - 1)
