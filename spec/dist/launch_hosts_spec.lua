-- launch_hosts_spec.lua: flowlua launch --hosts by a program that stands for ssh and by a real sshd on a port of the loopback: what tasks
-- find there, how they end, what is said of a host that is not reached, and that nothing is left anywhere.
local clusters = require "spec.support.clusters"
local support = require "spec.support.init"
local ports = require "spec.support.ports"

local run = support.run
local program = "env " .. support.command

-- Stands for ssh: a host whose name begins with "gone" is not reached, one that begins with "bare" has no flowlua. A login begins in
-- another folder, with few variables; as sshd does, it runs the command apart from the caller's processes.
local SSH = [[#!/bin/sh
host=$1; shift
case $host in
  gone*) echo "Warning: of no use" >&2; echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255;;
  bare*) echo "sh: 1: exec: flowlua: not found" >&2; exit 127;;
esac
cd /
exec env -i PATH="$PATH" LOGIN="$host" setsid -w sh -c "$*"
]]

-- A folder with that program and the script, in which `act` runs with $LAUNCH. Returns what came, the exit code, the folder
-- and the first port.
local function launch(options, script, arguments, act)
  local folder = support.file("task.lua", script):match "^(.*)/"
  local file = io.open(folder .. "/ssh", "w")
  file:write(SSH)
  file:close()
  local port = ports.take(8)
  local text = ("%s launch --ssh %s/ssh --start-port %d %s task.lua %s"):format(program, folder, port, options, arguments or "")
  act = (act or "timeout -k 5 60 $LAUNCH"):gsub("%$LAUNCH", (text:gsub("%%", "%%%%")))
  local output, code = run(("cd %s && chmod +x ssh && { %s; }"):format(folder, act))
  return output, code, folder, port
end

local count = support.count

describe("flowlua launch --hosts", function()
  it("gives each task its address, the variables, the folder and its arguments", function()
    local output, code, folder, port = launch("--hosts 127.0.0.2,me@127.0.0.3:2 --chief --evaluator", [[
      print(os.getenv "TF_CONFIG")
      print(os.getenv "LOGIN", #os.getenv "FLOW_SECRET", os.getenv "FLOW_ODD", os.getenv "OTHER", os.getenv "FLOW_LISTEN_DESCRIPTOR",
        io.popen("pwd"):read "*l", io.read "*a" == "", table.concat(arg, "|"))]], "-- 'a  b' '$x' \"it's\"",
      "export FLOW_ODD='a b=\"c\" '\"'\"'$d' OTHER=1; timeout -k 5 60 $LAUNCH")
    assert.equal(0, code, output)
    local cluster = ('{"cluster":{"chief":["127.0.0.2:%d"],"worker":["127.0.0.2:%d","127.0.0.3:%d","127.0.0.3:%d"]},"task":'):format(
      port, port + 1, port, port + 1)
    for name, place in pairs { ["chief:0"] = "127.0.0.2", ["worker:0"] = "127.0.0.2", ["worker:1"] = "me@127.0.0.3",
      ["worker:2"] = "me@127.0.0.3", ["evaluator:0"] = "127.0.0.2" } do
      local job, index = name:match "(%a+):(%d)"
      assert.truthy(output:find(('[%s] %s{"index":%s,"type":"%s"}}\n'):format(name, cluster, index, job), 1, true), output)
      assert.truthy(output:find(("[%s] %s\t64\ta b=\"c\" '$d\tnil\tnil\t%s\ttrue\ta  b|$x|it's\n"):format(name, place, folder), 1, true),
        output)
    end
  end)

  it("shares out the cores of a host among its tasks", function()
    local cores = tonumber((run(program .. " -e 'print(flow.config.get_threads())'")))
    local output = launch("--hosts 127.0.0.2:2,127.0.0.3", "print('threads', os.getenv 'FLOW_THREADS')")
    for index, tasks in pairs { [0] = 2, 2, 1 } do
      assert.truthy(output:find(("[worker:%d] threads\t%d\n"):format(index, math.max(1, math.floor(cores / tasks))), 1, true), output)
    end
    output = launch("--hosts 127.0.0.2:2,127.0.0.3 --threads 7", "print('threads', os.getenv 'FLOW_THREADS')")
    assert.equal(3, count(output, "threads\t7\n"), output)
  end)

  it("returns how the first task that failed has ended", function()
    local output, code = launch("--hosts 127.0.0.2,127.0.0.3 --kill-after 0.2", [[
      if os.getenv("TF_CONFIG"):find '"index":1' then os.exit(7) end
      os.execute "sleep 60"]])
    assert.equal(7, code, output)
    assert.truthy(output:find("flowlua launch: worker:1 exited with 7; worker:0: 0.2 s to end\n", 1, true), output)
    assert.truthy(output:find("flowlua launch: worker:0 did not end within 0.2 s: SIGTERM\n", 1, true), output)
    output, code = launch("--hosts 127.0.0.2", "os.execute 'kill -9 $PPID'")
    assert.equal(137, code, output)
    assert.equal("flowlua launch: worker:0 was killed by SIGKILL\n", output)
  end)

  it("names a host that is not reached, with what ssh said, once", function()
    local output, code = launch("--hosts 127.0.0.2,gone.example --kill-after 0.2", "os.execute 'sleep 60'")
    assert.equal(255, code, output)
    assert.truthy(output:find("flowlua launch: worker:1 was not started on gone.example: ssh: connect to host gone.example port 22: "
      .. "Connection refused; worker:0: 0.2 s to end\n", 1, true), output)
    assert.equal(1, count(output, "Connection refused"), output)
    output, code = launch("--hosts bare", "print 'never'")
    assert.equal(127, code, output)
    assert.equal("flowlua launch: worker:0 was not started on bare: sh: 1: exec: flowlua: not found\n", output)
    output, code = run(program .. " launch --hosts a --ssh /nowhere/ssh x.lua")
    assert.equal(127, code, output)
    assert.equal("flowlua launch: worker:0 was not started on a: /nowhere/ssh cannot be run: No such file or directory\n", output)
  end)

  it("starts again what failed, on its host", function()
    local output, code = launch("--hosts 127.0.0.2,127.0.0.3 --max-restarts 1", [[
      local path = "failed-" .. os.getenv "LOGIN"
      if os.getenv "LOGIN" == "127.0.0.3" and not io.open(path) then io.open(path, "w"):close() os.exit(5) end
      if os.getenv "LOGIN" == "127.0.0.3" then io.open("back", "w"):close() end
      while not io.open "back" do os.execute "sleep 0.05" end      -- where one has finished, nobody waits for another
      print("done on", os.getenv "LOGIN", os.getenv "FLOW_MAX_RESTARTS")]])
    assert.equal(0, code, output)
    assert.truthy(output:find("flowlua launch: worker:1 exited with 5; it starts again (1 of 1)\n", 1, true), output)
    for _, name in ipairs { "127.0.0.2", "127.0.0.3" } do assert.truthy(output:find(("done on\t%s\t1\n"):format(name), 1, true), output) end
  end)

  it("shows its secret on no command line", function()
    local output, code = launch("--hosts 127.0.0.2", clusters.FIND_SECRET)
    assert.equal("[worker:0] 64\t0\n", output)
    assert.equal(0, code)
  end)

  it("trains over the hosts' addresses", function()
    local output, code = launch("--hosts 127.0.0.2,127.0.0.3", [[
      local flow = require "flow"
      print("sum", flow.distribute.MultiWorkerMirroredStrategy():reduce("SUM", flow.tensor { 3 }):item())]], "",
      "export FLOW_SHARED_MEMORY=0; timeout -k 5 60 $LAUNCH")
    assert.equal(0, code, output)
    for index = 0, 1 do assert.truthy(output:find(("[worker:%d] sum\t6\n"):format(index), 1, true), output) end
    assert.truthy(output:find("communication = AUTO (tcp)", 1, true), output)
  end)
end)

-- Tasks with a child and a child in its own session, which say when they are there.
local FAMILY = [[
  io.stdout:setvbuf "no"
  os.execute "sleep 76 & echo $! >>family; setsid sleep 76 & echo $! >>family"
  print "ready"
  os.execute "sleep 60; true"]]
-- $launcher is the launcher when both tasks are ready; `nobody` waits until none of the family is left.
local BEGIN = [[$LAUNCH >out 2>&1 & launcher=$!
  for i in $(seq 400); do [ "$(grep -c ready out)" = 2 ] && break; sleep 0.05; done; [ "$(grep -c ready out)" = 2 ] || cat out;]]
local NOBODY = [[wc -l <family; for i in $(seq 100); do left=0
  for id in $(cat family); do { tr '\0' ' ' <"/proc/$id/cmdline"; } 2>/dev/null | grep -q "^sleep 76" && left=1; done
  [ $left = 0 ] && break; sleep 0.1; done; [ $left = 0 ] && echo nobody || echo "left: $left"]]

local ENDS = {
  { "Ctrl-C", "kill -INT $launcher; wait $launcher;" },
  { "SIGTERM", "kill -TERM $launcher; wait $launcher;" },
  { "SIGKILL of the launcher", "kill -KILL $launcher; wait $launcher 2>/dev/null;" },
  -- Stopped first: else the second to die would see the first one's end, begin to end all of its children, the stand-in's far side
  -- among them, which a real ssh has on another machine, and be killed halfway.
  { "SIGKILL of the launcher's two processes at once", [[both="$(pgrep -P $launcher) $launcher"
    kill -STOP $both; kill -KILL $both; wait $launcher 2>/dev/null;]] },
  { "SIGKILL of ssh", "kill -KILL $(pgrep -P $(pgrep -P $launcher)); wait $launcher;" },
}

describe("flowlua launch --hosts leaves nothing", function()
  for _, case in ipairs(ENDS) do
    it("after " .. case[1], function()
      local output = launch("--hosts 127.0.0.2,127.0.0.3 --kill-after 0.3", FAMILY, "", BEGIN .. case[2] .. NOBODY)
      assert.truthy(output:find "4\nnobody\n$", output)
    end)
  end
end)

describe("flowlua --remote", function()
  local function order(text) return run(("printf '%s' | %s --remote"):format(text, program)) end

  it("says what is wrong with an order", function()
    local version = run(program .. " -e 'io.write(flow.version)'")
    assert.equal("flowlua --remote is what flowlua launch --hosts starts\n", (order ""))
    assert.equal("flowlua --remote is what flowlua launch --hosts starts\n", (order "hello\\n"))
    assert.equal(("this host has flowlua %s, the launcher 9.8.7: all hosts need the same version\n"):format(version),
      (order "flowlua 9.8.7 10\\n"))
    assert.equal("the launcher went away before it had said what to do\n", (order(("flowlua %s 100\\nF/"):format(version))))
    assert.truthy(order(("flowlua %s 99999999999999\\n"):format(version)):find "^there is no memory for 99999999999999 bytes of an order\n")
    local output, code = order(("flowlua %s 14\\nF/no/folder\\0At"):format(version))
    assert.equal("the folder /no/folder of the launcher is not on this host: No such file or directory\n", output)
    assert.equal(1, code)
  end)
end)

-- A real sshd, on its own port, with keys that are made here.
local function start_sshd()
  local there = os.execute("test -x /usr/sbin/sshd && command -v ssh-keygen >/dev/null") == 0
  if not there then return nil, "sshd is not installed (openssh-server)" end
  local folder, port = support.folder(), ports.take(1)
  local output, code = run(([[cd %s && chmod 700 . && ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f key &&
    mv key.pub known && { [ "$(id -u)" != 0 ] || mkdir -p /run/sshd; } &&
    /usr/sbin/sshd -f /dev/null -h $PWD/host -p %d -E $PWD/log -o PidFile=$PWD/pid -o AuthorizedKeysFile=$PWD/known -o StrictModes=no \
      -o UsePAM=no -o PermitRootLogin=yes -o ListenAddress=127.0.0.2 -o ListenAddress=127.0.0.3 &&
    for i in $(seq 100); do [ -s pid ] && break; sleep 0.05; done; [ -s pid ] || { cat log; false; }]]):format(folder, port))
  local ssh = ("ssh -F none -p %d -i %s/key -o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null "
    .. "-o LogLevel=ERROR -o BatchMode=yes"):format(port, folder)
  if code == 0 then output, code = run(ssh .. " 127.0.0.2 true") end
  if code ~= 0 then return nil, "sshd does not let this user in: " .. output:gsub("%s+", " ") end
  return { ssh = ssh, stop = function() os.execute(("kill $(cat %s/pid); rm -r %s"):format(folder, folder)) end }
end

describe("flowlua launch --hosts by a real sshd", function()
  it("trains, returns statuses, names what ssh says and leaves nothing", function()
    local server, reason = start_sshd()
    if not server then return pending(reason) end
    local options = ("--hosts 127.0.0.2,127.0.0.3 --kill-after 0.3 --ssh '%s'"):format(server.ssh)
    local ok, failure = pcall(function()
      local output, code = launch(options, [[
        local flow = require "flow"
        print("sum", flow.distribute.MultiWorkerMirroredStrategy():reduce("SUM", flow.tensor { 3 }):item(), io.popen("pwd"):read "*l")
        if os.getenv("TF_CONFIG"):find '"index":1' then os.exit(9, true) end]])
      assert.equal(9, code, output)
      for index = 0, 1 do assert.truthy(output:find(("%%[worker:%d%%] sum\t6\t/"):format(index)), output) end
      assert.truthy(output:find("flowlua launch: worker:1 exited with 9", 1, true), output)
      for _, case in ipairs(ENDS) do
        output = launch(options, FAMILY, "", BEGIN .. case[2] .. NOBODY)
        assert.truthy(output:find "4\nnobody\n$", case[1] .. ": " .. output)
      end
      output, code = launch(("--hosts 127.0.0.4 --ssh '%s'"):format(server.ssh), "print 'never'")
      assert.equal(255, code, output)
      assert.truthy(output:find "^flowlua launch: worker:0 was not started on 127.0.0.4: ssh: connect to host 127.0.0.4 port %d+: "
        , output)
    end)
    server.stop()
    if not ok then error(failure, 0) end
  end)
end)
