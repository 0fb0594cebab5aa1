--- scripts/gpu-check, packed, in a root that has nothing but a shell and its tools, on emulated GPUs: within its time its table has a
--- row for each step, also where tests fail, hang or are killed, and when it is interrupted.
local support = require "spec.support.init"
local emulated = require "spec.support.emulated"

local build = support.program:gsub("/bin/[^/]*$", "")
local tools = "bash sh env cat cp mv rm ln mkdir mktemp tail head cut sed awk grep sort tr tee date timeout tar gzip xz dirname " ..
  "basename cmp wc sleep chmod ls ldd strip uname"

--- Why it cannot be tried here; nil if it can.
local function missing()
  if emulated.missing() then return emulated.missing() end
  if support.run("id -u") ~= "0\n" then return "only root can change the root" end
  local files = support.run("dpkg -L luajit2 lua-busted 2>&1")
  if not files:find("/usr/bin/luajit", 1, true) then return "Debian's packages of Lua are not installed" end
  for tool in tools:gmatch("%S+") do
    if support.run("command -v " .. tool) == "" then return "there is no " .. tool end
  end
end

local why = missing()
if why then
  pending("gpu-check: " .. why)
  return
end

local folder = support.folder()
local root = folder .. "/root"

local function make(path, text)
  support.write(path, text)
  assert(support.run("chmod +x " .. path) == "")
end

--- A build like that under test, with tests that are killed, fail and hang, as long as there is /out/hang, and with short ones in place of
--- those that take seconds; a checker that says what it was given.
local function make_root()
  local lines = {
    "set -e", ("cd %s"):format(support.root), ("build=%s folder=%s root=%s"):format(build, folder, root),
    "mkdir -p $folder/build/bin $folder/build/lib $root/tree $root/out $root/tmp $root/dev $root/usr/bin",
    "ln -s usr/bin $root/bin", "mknod -m 666 $root/dev/null c 1 3",
    "cp -a $build/bin/flowlua $build/bin/flow_tests $build/bin/test_cuda_* $build/bin/cuda_kernels $folder/build/bin",
    "cp -a $build/lib/libflow.so* $build/lib/libflow_[hi]*.so $build/lib/emulated $folder/build/lib",
    "git ls-files -z scripts spec lua core/ops/ops.def | tar -c --null -T - | tar -x -C $root/tree",
    "tools=$(for tool in " .. tools .. "; do command -v $tool; done)",
    "cp -L $tools $root/usr/bin",
    "for file in $(ldd $tools $build/bin/flowlua /usr/bin/luajit 2>/dev/null | grep -o '/[^ )]*' | grep -v ':$' | sort -u); do",
    "  case $file in *luajit*|*libflow*) continue ;; esac",
    "  mkdir -p $root${file%/*} && cp -L $file $root$file", "done",
  }
  local script = support.file("make_root.sh", table.concat(lines, "\n") .. "\n")
  local output, code = support.run("bash " .. script .. " 2>&1")
  assert.equal(0, code, output)
  local fakes = { test_cuda_device = "kill -9 $$", test_cuda_batch_norm = "[ ! -e /out/hang ] || sleep 1000",
                  test_cuda_library = 'echo "ERROR: one is not two"; [ "${FLOW_CUDA_FUSION:-2}" = 0 ]' }
  for spec in io.lines(support.root .. "spec/support/device_specs.txt") do
    support.write(("%s/tree/spec/%s_spec.lua"):format(root, spec), 'it("is on a GPU", function() require("flow").zeros({ 1 }) end)\n')
  end
  for slow in ("attention convolution filters recurrent reduce"):gmatch("%S+") do fakes["test_cuda_" .. slow] = "true" end
  for name, text in pairs(fakes) do
    os.remove(folder .. "/build/bin/" .. name)
    make(folder .. "/build/bin/" .. name, "#!/bin/bash\n" .. text .. "\n")
  end
  make(root .. "/usr/bin/compute-sanitizer", '#!/bin/bash\necho "checked ${@: -1}"\n')
  output, code = support.run(("FLOW_BUILD=%s/build %sscripts/gpu-pack --no-plans %s/pack 2>&1"):format(folder, support.root, root))
  assert.equal(0, code, output)
end

local function check(arguments)
  return ("env -u TMPDIR chroot %s /bin/bash /tree/scripts/gpu-check --packages /pack --out /out --emulated %s 2>&1")
    :format(root, arguments)
end

--- The table: NAME = { word, text }; each name once.
local function read_table()
  local rows = {}
  for line in io.lines(root .. "/out/table.txt") do
    local name, word, text = line:sub(1, 34):match("^(%S+) *$"), line:match("^(%S+) +(.*)$", 36)
    if name and word then
      assert.is_nil(rows[name], line)
      rows[name] = { word, text }
    end
  end
  return rows
end

--- Runs it with this many minutes, or with twice as many and so on where `reached` says of its rows that this machine, which may have other
--- work, took longer than that for what comes before.
local function check_until(reached, minutes, parts)
  local output, code, rows
  for _ = 1, 3 do
    output, code = support.run(check(("--minutes %g %s"):format(minutes, parts)))
    rows = read_table()
    if reached(rows) then break end
    minutes = 2 * minutes
  end
  for _, complaint in ipairs { "command not found", "No such file" } do assert.is_nil(output:find(complaint, 1, true), output) end
  return rows, output, code
end

describe("gpu-check in a clean root", function()
  setup(make_root)

  it("has a row for each step, also where one hangs until the end", function()
    support.write(root .. "/out/hang", "")
    local rows, output, code = check_until(function(found)
      return found.doctor[1] == "ok" and found.test_cuda_batch_norm[1] == "stopped"
    end, 0.5, "right")
    os.remove(root .. "/out/hang")
    assert.equal(1, code, output)
    assert.equal("ok", rows.doctor[1], output)
    assert.same({ "FAILED", "status 137" }, { rows.test_cuda_device[1], rows.test_cuda_device[2]:sub(1, 10) })
    assert.same({ "FAILED", "status 1: ERROR: one is not two" }, rows.test_cuda_library)
    assert.equal("stopped", rows.test_cuda_batch_norm[1], output)
    assert.matches("^no time left after %d+ of 120 s", rows.test_cuda_batch_norm[2])
    assert.same({ "skipped", "no time left" }, rows.test_cuda_view)
    for _, net in ipairs { "mnist", "flowers", "resnet50" } do
      assert.same({ "skipped", "no time left" }, rows["digest-" .. net .. "-bfloat16"])
      assert.same({ "skipped", "no time left" }, rows["speed-" .. net .. "-flowlua-bfloat16-0"])
    end
    assert.is_not_nil(rows["spec-golden-gradients"], output)
    local logs = support.run(("tar -xzOf %s/out/logs.tar.gz logs/test_cuda_library.log"):format(root))
    assert.equal("ERROR: one is not two\n", logs)
  end)

  it("goes on after what fails or is killed, without what can be switched off, and looks at that again in the end", function()
    local rows, output, code = check_until(function(found)
      local checked = found["memcheck-test_cuda_device"]
      return checked and checked[2] ~= "no time left"
    end, 4, "right")
    assert.equal(1, code, output)
    assert.equal("ok", rows.test_cuda_view[1], output)
    assert.equal("FAILED", rows["test_cuda_library-fusion-1"][1])
    assert.equal("ok", rows["test_cuda_library-fusion-0"][1])
    assert.matches("FLOW_CUDA_FUSION=0", rows.fusion[2])
    assert.equal("ok", rows["digest-mnist-bfloat16"][1], output)
    assert.equal("ok", rows["speed-mnist-flowlua-bfloat16-0"][1], output)
    assert.is_truthy(output:find("\nmnist flowlua bfloat16 +images/s %d"), output)
    assert.matches("checked .*/test_cuda_device$", rows["memcheck-test_cuda_device"][2])
  end)

  it("measures what it can, and skips by name what it cannot", function()
    make(root .. "/usr/bin/compute-sanitizer", "#!/bin/bash\necho '========= Error: Device not supported'\necho done\nexit 1\n")
    local rows, output = check_until(function(found)
      return found["racecheck-test_cuda_bundle"] and found["racecheck-test_cuda_bundle"][2] ~= "no time left"
    end, 0.7, "fast deep")
    assert.is_not_nil(rows.kernels, output)
    if rows.kernels[1] == "ok" then
      assert.is_truthy(support.read(root .. "/out/table.txt"):find("\n  copy +kernel +[%d.]+ us, "), "no kernel has a row in\n" .. output)
    end
    assert.same({ "skipped", "python3 has no torch here" }, rows["speed-flowers-torch"])
    assert.same({ "skipped", "ncu was not found" }, rows["profile-flowers"])
    assert.same({ "skipped", "========= Error: Device not supported" }, rows["racecheck-test_cuda_bundle"], output)
    for _, name in ipairs { "speed-mnist-in-turn", "speed-mnist-flowlua-float32-1", "speed-resnet50-flowlua-bfloat16-2",
                            "speed-mnist-tuned", "speed-resnet50-tuned", "racecheck-test_cuda_reduce", "tensors-deep", "spec-backend-ops",
                            "spec-golden-layers" } do
      assert.is_not_nil(rows[name], name .. " has no row in\n" .. output)
    end
    assert.matches("the GPU is emulated: no figure is one of a GPU", output)
  end)

  it("times kernels one by one", function()
    local output, code = support.run(("FLOW_PLUGINS=%s %s/bin/cuda_kernels small"):format(emulated.folder, build))
    assert.equal(0, code, output)
    assert.matches("\nproduct %(cublaslt%)\t[%d.]+ us, [%d.e+-]+ TFLOP/s, 100 %% of a product\n", output)
    for _, name in ipairs { "copy", "batch_norm_relu + 56x56x256 (parts)", "its gradient (cudnn)", "adam of flowers (segments)" } do
      assert.is_truthy(output:find("\n" .. name .. "\t", 1, true), output)
    end
  end)

  --- Runs the part right until a test has failed, then sends the script this signal; what was said of its end.
  local function end_by(signal)
    local script = support.file("interrupt.sh", ([[
      rm -f %s/out/table.txt
      %s >%s/said &
      until grep -s -q "^test_cuda_library  *FAILED" %s/out/table.txt || ! kill -0 $!; do sleep 0.1; done
      kill -%s $!
      wait $!
      echo "status $?"
    ]]):format(root, check("--minutes 2 right"):gsub(" 2>&1$", ""), folder, root, signal))
    return (support.run("bash " .. script .. " 2>&1"))
  end

  it("leaves its table when it is killed, and the logs of all steps but perhaps the last", function()
    assert.matches("status 137", end_by("KILL"))
    local rows = read_table()
    assert.equal("FAILED", rows.test_cuda_library[1])
    assert.same({ "skipped", "not reached yet" }, rows.test_cuda_view)
    assert.same({ "skipped", "not reached yet" }, rows["digest-resnet50-bfloat16"])
    assert.matches("logs/test_cuda_device.log", support.run(("tar -tzf %s/out/logs.tar.gz 2>&1"):format(root)))
  end)

  it("ends with its table when it is interrupted", function()
    assert.matches("status 130", end_by("TERM"))
    local rows = read_table()
    assert.equal("FAILED", rows.interrupted[1])
    assert.equal("FAILED", rows.test_cuda_library[1])
    assert.same({ "skipped", "not reached" }, rows.test_cuda_view)
    assert.same({ "skipped", "not reached" }, rows["digest-resnet50-bfloat16"])
    assert.matches("logs/test_cuda_library.log", support.run(("tar -tzf %s/out/logs.tar.gz 2>&1"):format(root)))
  end)
end)
