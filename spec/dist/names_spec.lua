-- names_spec.lua: clusters whose addresses are names: known late, or known to one machine otherwise than to the others. Each run has its
-- own /etc/hosts and /etc/resolv.conf, and network, in namespaces.
local support = require "spec.support.init"

local SCRIPT = [[
  local flow = require "flow"
  local strategy = flow.distribute.MultiWorkerMirroredStrategy()
  print("=", strategy:reduce("sum", flow.ones { 1 }):item())]]

-- Two workers at first_host and second_host, or one parameter server at third_host. The hosts file has `hosts` from the beginning, and
-- gets `later` once all wait for their names. before: what the shell does first. All outputs, and the status of the shell.
local function run(options)
  local folder, commands, tasks = support.folder(), {}, options.server and 0 or 1
  local script = support.file("task.lua", options.server and 'require("flow").distribute.Server():join()' or SCRIPT)
  for task = 0, tasks do
    local config = ([[{"cluster":{"worker":["first_host:23521","second_host:23522"]%s},"task":{"type":"%s","index":%d}}]]):format(
      options.server and ',"ps":["third_host:23523"]' or "", options.server and "ps" or "worker", task)
    commands[#commands + 1] = ("TF_CONFIG='%s' timeout -k 5 50 env %s %s > said%d 2>&1 &"):format(config, support.command, script, task)
    if options.later then
      commands[#commands + 1] = ("while [ $((n = n + 1)) -lt 300 ] && ! grep -q 'for its own name' said%d; do sleep 0.1; done"):format(task)
    end
  end
  return support.run(("unshare -m -n sh %s"):format(support.file("all", ([[
    cd %s
    printf '127.0.0.1 localhost\n%s' > hosts
    echo 'nameserver 127.0.0.1' > resolv      # where nobody answers: unknown names fail at once
    mount --make-rprivate / && mount --bind hosts /etc/hosts && mount --bind resolv /etc/resolv.conf || exit 77
    ip link set lo up || exit 77
    export FLOW_INSECURE=1 FLOW_THREADS=1 %s
    %s
    %s
    printf '%s' >> hosts
    wait
    cat said*]]):format(folder, options.hosts or "", options.environment or "", options.before or "", table.concat(commands, "\n"),
      options.later or ""))))
end

local function unavailable()
  return os.execute "unshare -m -n ip link set lo up 2>/dev/null" ~= 0 and "namespaces of mounts and networks need root, and ip"
end

describe("a task whose own name is not known", function()
  it("waits until it is", function()
    if unavailable() then return pending(unavailable()) end
    local output = run { later = [[127.0.0.1 first_host second_host\n]] }
    assert.equal(2, select(2, output:gsub("=\t2", "")), output)
    for worker, name in pairs { [0] = "first_host:23521", "second_host:23522" } do
      local wanted = ("worker:%d: waits for its own name: the name of %s is not known: "):format(worker, name)
      assert.truthy(output:find(wanted, 1, true), output)
    end
  end)

  it("gives up when start_within is over", function()
    if unavailable() then return pending(unavailable()) end
    local output = run { environment = "FLOW_START_WITHIN=1" }
    local wanted = "this process has waited 1 s for its own name: the name of second_host:23522 is not known: "
    assert.truthy(output:find(wanted, 1, true), output)
  end)

  it("waits as a parameter server, too", function()
    if unavailable() then return pending(unavailable()) end
    local output = run { later = [[127.0.0.1 third_host\n]], environment = "FLOW_START_WITHIN=1", server = true }
    assert.truthy(output:find("waits for its own name: the name of third_host:23523 is not known", 1, true), output)
    assert.truthy(output:find("ps:0: listening on third_host:23523", 1, true), output)
  end)
end)

describe("a task whose own name is an address of the loopback interface", function()
  local NOTE = "_host:%d+ is 127%.0%.[01]%.1 here, which other machines do not reach: let /etc/hosts"
  it("says so where other tasks are on other hosts", function()
    if unavailable() then return pending(unavailable()) end
    local output = run { hosts = [[127.0.1.1 first_host\n127.0.0.1 second_host\n]] }
    assert.equal(2, select(2, output:gsub("=\t2", "")), output)      -- it is one machine
    assert.truthy(output:find("worker:0: first" .. NOTE) and output:find("worker:1: second" .. NOTE), output)
  end)
end)

describe("a task whose own name has several addresses", function()
  it("says at which one it listens", function()
    if unavailable() then return pending(unavailable()) end
    local output = run { hosts = [[192.0.2.7 first_host\n192.0.2.8 first_host\n127.0.0.1 second_host\n]], before = [[
      ip addr add 192.0.2.7/32 dev lo && ip addr add 192.0.2.8/32 dev lo || exit 77]] }
    assert.equal(2, select(2, output:gsub("=\t2", "")), output)
    assert.truthy(output:find "first_host:%d+ has 2 addresses, and this process listens at 192%.0%.2%.[78]: where others do not", output)
  end)
end)
