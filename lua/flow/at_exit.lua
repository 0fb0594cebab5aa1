-- at_exit.lua: what is to be done when the program ends, by those who hold something that others wait for. The flowlua program calls
-- at_exit.run; in a host, the finalizers of the handles do what can be done.

local at_exit = {}
local entries = {}

-- f(orderly, why) is called at the end; orderly: the program did not fail; why: its error, else nil.
function at_exit.add(owner, f)
  entries[#entries + 1] = { owner = owner, f = f }
end

function at_exit.remove(owner)
  for i = #entries, 1, -1 do
    if entries[i].owner == owner then table.remove(entries, i) end
  end
end

-- Newest first; one that fails does not keep the others from it.
function at_exit.run(orderly, why)
  while #entries > 0 do
    local ok, problem = pcall(table.remove(entries).f, orderly, why)
    if not ok then require("flow.log").warning("%s", tostring(problem)) end
  end
end

return at_exit
