--- tasks.lua: what scripts share that run as tasks of a cluster: they end at a place, each once, and print a digest of what they leave.
--- A script in spec/dist finds it by package.path = arg[0]:match("^(.*)spec/dist/") .. "?.lua;" .. package.path
local ffi = require "ffi"

ffi.cdef "int raise(int signal); int usleep(unsigned microseconds);"

local tasks = {}

--- This task: "worker:0"; outside of a cluster "alone:0".
local config = os.getenv("TF_CONFIG") or '"type":"alone","index":0'
tasks.name = config:match('"type":"(%a+)"') .. ":" .. config:match('"index":(%d+)')

--- Sends this process a signal if `list`, "NAME@PLACE,...", has it at this place, unless it did in an earlier life, which a file in the
--- folder says. NAME: a task, or "all".
function tasks.signal_at(folder, list, signal, place)
  for name, where in list:gmatch("([^,@]+)@([^,]+)") do
    local mark = ("%s/%s@%s"):format(folder, name:gsub("^all$", tasks.name), (where:gsub("/", "-")))
    local before = io.open(mark)
    if (name == tasks.name or name == "all") and where == tostring(place) and not before then
      io.open(mark, "w"):close()
      ffi.C.raise(signal)
    end
    if before then before:close() end
  end
end

--- What worker:0 does after a step: it leaves a file "batch@N", for those who come then, and goes slowly as long as fewer than `wanted`
--- workers take part.
function tasks.after_batch(folder, number, strategy, wanted)
  if tasks.name ~= "worker:0" then return end
  io.open(("%s/batch@%d"):format(folder, number), "w"):close()
  if strategy._worker and strategy._worker.count < wanted then ffi.C.usleep(3e5) end
end

--- Adds the values of variables to a list of texts, to the last bit.
function tasks.add_values(list, variables)
  for _, v in ipairs(variables) do
    local value = v:value():cast("float64"):reshape { -1 }
    for i = 1, value.shape[1] do list[#list + 1] = ("%a"):format(value[i]:item()) end
  end
end

--- "NUMBER of COUNT values": a number that follows from the texts.
function tasks.digest(list)
  local sum = 0
  for _, text in ipairs(list) do
    for i = 1, #text do sum = (sum * 31 + text:byte(i)) % 2 ^ 40 end
  end
  return ("%.0f of %d values"):format(sum, #list)
end

return tasks
