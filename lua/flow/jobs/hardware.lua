-- hardware.lua: whether a service has the machines, GPUs and places that a job asks for; what both forms of jobs share.

local errors = require "flow.errors"
local findings = require "flow.jobs.findings"
local machines = require "flow.jobs.machine_types"
local regions = require "flow.jobs.regions"
local schema = require "flow.jobs.schema"

local hardware = {}

local enumerate = findings.enumerate

local function family_of(machine) return machine:match "^(.*)%-%d+%a?$" end
local function size_of(machine) return tonumber(machine:match "%-(%d+)%a?$") end

local FAR = 1000      -- more than any machine has processors: another family comes after all of the same

-- The machine nearest in size, if there is one of the same family, that has this many of these GPUs; nil if there is none.
local function nearest_machine(machine, gpu, count, known)
  local best, best_distance
  for name, gpus in pairs(known) do
    local distance = math.abs(size_of(name) - size_of(machine)) + (family_of(name) == family_of(machine) and 0 or FAR)
    for _, valid in ipairs(gpus[gpu] or {}) do
      if valid == count and (not best or distance < best_distance or distance == best_distance and name < best) then
        best, best_distance = name, distance
      end
    end
  end
  return best
end

-- Of a list of regions those of the same continent, if there are any.
local function near(region, list)
  local same = {}
  for _, name in ipairs(list) do
    if name:match "^%a+" == region:match "^%a+" then same[#same + 1] = name end
  end
  return #same > 0 and same or list
end

local function gpus_of(count) return ("%d GPU%s"):format(count, count == 1 and "" or "s") end

local sorted_names = require("flow.names").sorted

-- Says that a machine is not known; returns false then.
function hardware.check_machine(report, read, field, service)
  local machine = read[field]
  if machines.of(service)[machine] or (service ~= "vertex" and machines.legacy[machine]) then return true end
  if machine == machines.TPU then
    schema.error(report, read, field, "is %s: flowlua computes on CPUs and NVIDIA's GPUs", machine)
    return false
  end
  local names = machines.of(service)
  if service ~= "vertex" then for name in pairs(machines.legacy) do names[name] = true end end
  local nearest = errors.nearest(machine, names)
  schema.error(report, read, field, "is %q: there is no such machine%s", machine,
    nearest and ("; the nearest name is %s"):format(nearest) or "; names are as n1-standard-4, n1-highmem-8, n1-highcpu-16, a2-highgpu-1g")
  return false
end

-- GPUs of a machine. read: where the fields are whose names are count_field and type_field; machine: nil where it is not known.
-- Returns the GPU's name and the count where both are valid.
function hardware.check_gpus(report, read, count_field, type_field, machine, service)
  local gpu, count = read[type_field], read[count_field]
  local names = machines.gpu_names(service)
  if gpu and not names[gpu] then
    local upper = machines.gpu_of_flag(gpu)
    local nearest = names[upper] and upper or errors.nearest(upper, names)
    schema.error(report, read, type_field, "is %q: there is no such GPU%s", gpu,
      nearest and ("; the nearest name is %s"):format(nearest) or "; there are " .. enumerate(sorted_names(names), "and"))
    return
  end
  if count == 0 then
    schema.error(report, read, count_field, "is 0: leave it out for a machine without GPUs")
    return
  end
  if not (gpu and count) then
    if gpu or count then
      report:error(schema.place(read), "%s is missing: %s", schema.path(read, gpu and count_field or type_field),
        gpu and ("how many %s has the machine?"):format(gpu) or ("which GPUs are the %d?"):format(count))
    end
    return
  end
  local takes = machine and machines.of(service)[machine]
  if not takes then return gpu, count end
  local counts = takes[gpu]
  if not counts then
    local others, other = sorted_names(takes), nearest_machine(machine, gpu, count, machines.of(service))
    schema.error(report, read, type_field, "is %s: %s takes %s%s", gpu, machine,
      #others > 0 and enumerate(others, "or") or "no GPUs",
      other and ("; the nearest machine with %d %s is %s"):format(count, gpu, other) or "")
    return
  end
  for _, valid in ipairs(counts) do
    if valid == count then return gpu, count end
  end
  local nearest, other = machines.nearest(counts, count), nearest_machine(machine, gpu, count, machines.of(service))
  schema.error(report, read, count_field, "is %d: %s takes %s %s; the nearest %s %s%s", count,
    machine, enumerate(counts, "or"), gpu, #nearest == 1 and "is" or "are", enumerate(nearest, "and"),
    other and ("; %s takes %d"):format(other, count) or "")
end

-- A machine whose name says that it has GPUs is asked for with them.
function hardware.check_built_in(report, read, field, gpu, service)
  local takes = read[field] and machines.of(service)[read[field]]
  if not takes or gpu or not read[field]:find "^a[23]%-" and not read[field]:find "^g2%-" then return end
  local name = next(takes)
  schema.error(report, read, field, "is %s, which comes with %d %s: the GPUs have to be asked for",
    read[field], takes[name][1], name)
end

-- roles: { { title =, gpu =, gpu_count = }, ... }; read, field: where the region is; region: nil if it is not said.
function hardware.check_region(report, place, path, region, roles)
  if not regions.names[region] then
    local nearest = errors.nearest(region, regions.names)
    report:error(place, "%s is %q: there is no such region%s", path, region,
      nearest and ("; the nearest name is %s"):format(nearest) or "; names are as us-central1, europe-west4")
    return
  end
  local gpus, seen = {}, {}
  for _, role in ipairs(roles) do
    if role.gpu and regions.knows(role.gpu) and not seen[role.gpu] then
      seen[role.gpu] = true
      gpus[#gpus + 1] = role.gpu
    end
  end
  for _, gpu in ipairs(gpus) do
    if regions.zones(region, gpu) == "" then
      report:error(place, "%s is %s, where there is no %s; regions with it: %s", path, region, gpu,
        enumerate(near(region, regions.with { gpu }), "and"))
      return
    end
  end
  if #gpus < 2 or regions.common(region, gpus) ~= "" then return end
  local where = {}
  for i, gpu in ipairs(gpus) do
    local zones = {}
    for zone in regions.zones(region, gpu):gmatch "%a" do zones[#zones + 1] = ("%s-%s"):format(region, zone) end
    where[i] = ("%s in %s"):format(gpu, enumerate(zones, "and"))
  end
  local others = regions.with(gpus)
  report:error(place, "%s is %s, which has no zone with all GPUs of the job: there are %s; %s", path, region, enumerate(where, "and"),
    #others > 0 and "they are together in " .. enumerate(near(region, others), "and") or "no region has them together: ask for one kind")
end

-- Workers of a synchronous strategy do equal parts of a step: all have the same GPUs. roles as above, with place and role.
function hardware.check_equal(report, roles)
  local first
  for _, role in ipairs(roles) do
    if role.role == "ps" then return end      -- asynchronous: nobody waits for the slowest
  end
  for _, role in ipairs(roles) do
    if role.role == "chief" or role.role == "worker" then
      if first and not (first.invalid_gpus or role.invalid_gpus) and (first.gpu_count or 0) ~= (role.gpu_count or 0) then
        report:error(role.place, "%s has %s, %s has %s: all workers of a synchronous strategy need the same number", first.title,
          gpus_of(first.gpu_count or 0), role.title, gpus_of(role.gpu_count or 0))
      end
      first = first or role
    end
  end
end

return hardware
