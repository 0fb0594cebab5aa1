-- at_exit.lua: functions to run when the program ends, for modules that hold something other processes wait for. The flowlua program
-- calls at_exit.run; in a host, the finalizers of the handles do what they can.

local at_exit = {}
-- A list of { owner =, f = } in the order of add(). owner: any value, by which remove() finds the entry again.
local entries = {}

-- f(orderly, why) is called at the end; orderly: the program did not fail; why: its error, else nil.
function at_exit.add(owner, f)
  entries[#entries + 1] = { owner = owner, f = f }
end

-- Forgets all functions of this owner; does nothing if there are none.
function at_exit.remove(owner)
  for i = #entries, 1, -1 do
    if entries[i].owner == owner then table.remove(entries, i) end
  end
end

-- Runs the functions, the newest first, and forgets each before it runs, so that one which calls run() or exits does not run twice. The
-- error of one is a warning, and the others still run.
function at_exit.run(orderly, why)
  while #entries > 0 do
    local ok, problem = pcall(table.remove(entries).f, orderly, why)
    if not ok then require("flow.log").warning("%s", tostring(problem)) end
  end
end

return at_exit
