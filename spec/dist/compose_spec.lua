-- compose_spec.lua: the services of a compose file that flowlua submit writes, run without Docker: each one's entrypoint and command, with
-- its environment and in its own network namespace, where the others are found by the names of their services.
local support = require "spec.support.init"
local document = require "flow.jobs.document"
local yaml = require "flow.jobs.yaml"

local SCRIPT = [[
  local flow = require "flow"
  local options = flow.args { epochs = 1 }
  local strategy = flow.distribute.MultiWorkerMirroredStrategy()
  flow.set_random_seed(3)
  local model = strategy.scope(function()
    local made = flow.Sequential { flow.layers.Input { 20 }, flow.layers.Dense(30, { activation = "relu" }), flow.layers.Dense(5) }
    made:compile { optimizer = "adam", loss = "mse" }
    return made
  end)
  local x, y = flow.random.normal({ 60, 20 }, { seed = 1 }), flow.random.normal({ 60, 5 }, { seed = 2 })
  local history = model:fit(x, y, { batch_size = 30, epochs = options.epochs, verbose = 0 })
  local resolver = strategy.cluster_resolver
  print(("= %s %d of %d: %d epochs, loss %.9g"):format(resolver.task_type, resolver.task_id, resolver.num_workers, #history.epoch,
    history.history.loss[#history.epoch]))
]]

local BRIDGE = "flowcompose"

local function namespace(index) return BRIDGE .. index end
local function address(index) return "10.78.0." .. index end

local function shell(text, ...) return (select(2, support.run(text:format(...)))) == 0 end

local function take_down(count)
  for index = 1, count do shell("ip netns del %s; ip link del flowc%d", namespace(index), index) end
  shell("ip link del %s", BRIDGE)
end

-- As many namespaces, which a bridge connects; false where this kernel or user makes none.
local function put_up(count)
  take_down(count)
  if not shell("ip link add %s type bridge && ip link set %s up", BRIDGE, BRIDGE) then return false end
  for index = 1, count do
    local made = shell(([[set -e
      ip netns add N; ip link add flowcI type veth peer name e0 netns N; ip link set flowcI master B up
      ip -n N addr add %s/24 dev e0; ip -n N link set lo up; ip -n N link set e0 up]])
      :gsub("N", namespace(index)):gsub("I", tostring(index)):gsub("B", BRIDGE), address(index))
    if not made then return false end
  end
  return true
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- The shell text of a service, as Docker would start it in its network, with the program of this build.
local function command_of(service, index, folder, names)
  local words, hosts = { "env", "FLOWLUA_PATH=" .. quoted(support.root .. "lua") }, { "127.0.0.1 localhost" }
  for _, file in ipairs(service.env_file or {}) do
    for line in io.lines(folder .. "/" .. file) do words[#words + 1] = quoted(line) end
  end
  for name, value in pairs(service.environment) do words[#words + 1] = quoted(name .. "=" .. value) end
  for _, part in ipairs { service.entrypoint, service.command } do
    for _, word in ipairs(part) do words[#words + 1] = word == "flowlua" and quoted(support.program) or quoted(word) end
  end
  for other, name in ipairs(names) do hosts[other + 1] = address(other) .. " " .. name end
  local path = support.file("hosts" .. index, table.concat(hosts, "\n") .. "\n")
  return ("ip netns exec %s unshare --mount sh -c %s"):format(namespace(index), quoted(
    ("mount --bind %s /etc/hosts && cd %s && exec timeout -k 5 60 %s"):format(path, folder, table.concat(words, " "))))
end

describe("a compose file", function()
  it("has services that find each other by their names and train together", function()
    if not yaml.available() then return pending("libyaml is not installed") end
    if not shell "test $(id -u) = 0 && command -v ip" then return pending("network namespaces need root and ip (Debian: iproute2)") end
    local folder = support.folder()
    support.write(folder .. "/train.lua", SCRIPT)
    local output, code = support.run(([[cd FOLDER && PROGRAM submit digits --backend compose --no-submit --output-dir FOLDER
      --image img:1 --region us-central1 --scale-tier CUSTOM --master-machine-type n1-highcpu-16
      --worker-count 2 --worker-machine-type n1-highcpu-16 train.lua -- --epochs 3]])
      :gsub("\n%s*", " "):gsub("FOLDER", folder):gsub("PROGRAM", support.program))
    assert.equal(0, code, output)
    local names, commands = {}, {}
    local services = document.to_value(yaml.parse(support.read(folder .. "/compose.yaml"), "compose.yaml")).services
    for name in pairs(services) do names[#names + 1] = name end
    table.sort(names)
    assert.same({ "chief-0", "worker-0", "worker-1" }, names)
    for index, name in ipairs(names) do commands[index] = command_of(services[name], index, folder, names) end
    if not put_up(#names) then
      take_down(#names)
      return pending("this kernel makes no network namespaces with a bridge")
    end
    local said
    said, code = support.run(table.concat(commands, " & ") .. " & wait")
    take_down(#names)
    assert.equal(0, code, said)
    local lines = {}
    for line in ("\n" .. said):gmatch "\n= ([^\n]+)" do lines[#lines + 1] = line end
    table.sort(lines)
    assert.equal(3, #lines, said)
    local loss = lines[1]:match "loss (%S+)$"
    for index, who in ipairs { "chief 0 of 3", "worker 0 of 3", "worker 1 of 3" } do
      assert.equal(("%s: 3 epochs, loss %s"):format(who, loss), lines[index], said)
    end
  end)
end)
