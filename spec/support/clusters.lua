--- clusters.lua: clusters of two workers that specs start, and what their tasks say.
local support = require "spec.support.init"

local clusters = {}

--- Starts two workers and waits for them. options: begin: what is before the script; launch: options of the launcher; arguments: of the
--- script; environment: variables. Returns what each worker printed after "=", by its index, all output and the exit code.
function clusters.launch(script, options)
  local output, code = support.run(("%s timeout -k 5 60 env %s launch --workers 2 --threads 1 %s %s -- %s"):format(
    options.environment or "", support.command, options.launch, support.file("task.lua", options.begin .. script),
    options.arguments or ""))
  local said = { [0] = {}, {} }
  for line in output:gmatch("[^\n]+") do
    local worker, text = line:match("^%[worker:(%d)%] =\t(.*)$")
    if worker then table.insert(said[tonumber(worker)], text) end
  end
  return said, output, code
end

--- A task that prints how long its secret is, and on how many command lines of this machine it is.
clusters.FIND_SECRET = [[
  local secret, found = os.getenv "FLOW_SECRET", 0
  for id in io.popen("ls /proc"):read("*a"):gmatch "%d+" do
    local file = io.open("/proc/" .. id .. "/cmdline", "rb")
    if file and (file:read("*a") or ""):find(secret, 1, true) then found = found + 1 end
  end
  print(#secret, found)]]

return clusters
