-- regions.lua: where there are GPUs: the zones of each region by the kind of GPU. A job runs in one zone, so that all kinds that it asks
-- for have to be there.
--
-- Sources: the regions with GPUs of AI Platform Training; the zones of "GPU regions and zones" of Compute Engine as of 2022, but for T4
-- in us-central1, where AI Platform's guide names a, b and f.

local regions = {}

local GPUS = {
  ["us-west1"] = { K80 = "b", P100 = "ab", T4 = "ab", V100 = "ab", A100 = "b" },
  ["us-west2"] = { P4 = "bc", T4 = "bc" },
  ["us-central1"] = { K80 = "ac", P4 = "ac", P100 = "cf", T4 = "abf", V100 = "abcf", A100 = "abcf" },
  ["us-east1"] = { K80 = "cd", P100 = "bc", T4 = "cd", V100 = "c", A100 = "b" },
  ["us-east4"] = { P4 = "abc", T4 = "abc" },
  ["northamerica-northeast1"] = { P4 = "abc", T4 = "c" },
  ["southamerica-east1"] = { T4 = "ac" },
  ["europe-west1"] = { K80 = "bd", P100 = "bd", T4 = "bcd" },
  ["europe-west2"] = { T4 = "ab" },
  ["europe-west4"] = { P4 = "bc", P100 = "a", T4 = "abc", V100 = "abc", A100 = "ab" },
  ["asia-south1"] = { T4 = "ab" },
  ["asia-southeast1"] = { P4 = "bc", T4 = "abc", A100 = "bc" },
  ["asia-east1"] = { K80 = "ab", P100 = "ac", T4 = "ac", V100 = "c" },
  ["asia-northeast1"] = { T4 = "ac", A100 = "ac" },
  ["asia-northeast3"] = { T4 = "bc", A100 = "ab" },
  ["australia-southeast1"] = { P4 = "ab", P100 = "c", T4 = "ac" },
}

-- Regions of the services without GPUs.
local WITHOUT = {
  "us-west3", "us-west4", "europe-west3", "europe-west6", "europe-north1", "europe-central2", "asia-east2", "asia-northeast2",
  "asia-southeast2", "me-west1", "us-south1", "us-east5",
}

-- All names, of regions with and without GPUs.
regions.names = {}
for name in pairs(GPUS) do regions.names[name] = true end
for _, name in ipairs(WITHOUT) do regions.names[name] = true end

local function short(gpu) return gpu:match "^NVIDIA_TESLA_(.*)$" end

-- Whether the tables say where this kind of GPU is.
function regions.knows(gpu) return short(gpu) ~= nil end

-- The letters of the zones of a region that have a kind of GPU; "" for none.
function regions.zones(region, gpu)
  return GPUS[region] and GPUS[region][short(gpu)] or ""
end

-- The regions that have all these kinds in one zone, in order.
function regions.with(gpus)
  local found = {}
  for name in pairs(GPUS) do
    if #regions.common(name, gpus) > 0 then found[#found + 1] = name end
  end
  table.sort(found)
  return found
end

-- The letters of the zones of a region that have all these kinds.
function regions.common(region, gpus)
  local common = "abcdf"
  for _, gpu in ipairs(gpus) do
    local zones = regions.zones(region, gpu)
    common = common:gsub("%a", function(zone) return zones:find(zone, 1, true) and zone or "" end)
  end
  return common
end

return regions
