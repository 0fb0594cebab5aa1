-- fields.lua: the fields of job descriptions: TrainingInput of AI Platform Training (REST reference ml/v1, projects.jobs), CustomJob of
-- Vertex AI (REST reference v1, projects.locations.customJobs).

local fields = {}

local replica = { title = "a ReplicaConfig", fields = {
  imageUri = "text", acceleratorConfig = { title = "acceleratorConfig", fields = { count = "count", type = "text" } },
  containerCommand = "texts", containerArgs = "texts", tpuTfVersion = "text",
  diskConfig = { title = "diskConfig", fields = { bootDiskType = "text", bootDiskSizeGb = "count" } },
} }

fields.training_input = { title = "trainingInput", transparent = true, fields = {
  args = "texts", enableWebAccess = "flag", encryptionConfig = { title = "encryptionConfig", fields = { kmsKeyName = "text" } },
  evaluatorConfig = replica, evaluatorCount = "count", evaluatorType = "text", hyperparameters = "any", jobDir = "text",
  masterConfig = replica, masterType = "text", network = "text", packageUris = "texts", parameterServerConfig = replica,
  parameterServerCount = "count", parameterServerType = "text", pythonModule = "text", pythonVersion = "text", region = "text",
  runtimeVersion = "text", scaleTier = "text",
  scheduling = { title = "scheduling", fields = { maxRunningTime = "duration", maxWaitTime = "duration", priority = "count" } },
  serviceAccount = "text", useChiefInTfConfig = "flag", workerConfig = replica, workerCount = "count", workerType = "text",
}, elsewhere = {
  masterCount = "a job has one master",
  imageUri = "it stands in masterConfig, workerConfig, ...",
  acceleratorConfig = "it stands in masterConfig, workerConfig, ...",
} }

fields.training_job = { title = "a job", fields = {
  jobId = "text", labels = "labels", trainingInput = fields.training_input,
}, elsewhere = { predictionInput = "flowlua submits training jobs" } }
for name in pairs(fields.training_input.fields) do fields.training_job.elsewhere[name] = "it stands in trainingInput" end

local env = { list = { title = "an entry of env", fields = { name = "text", value = "text" } } }

fields.worker_pool = { title = "a worker pool", fields = {
  machineSpec = { title = "machineSpec", fields = {
    machineType = "text", acceleratorType = "text", acceleratorCount = "count", tpuTopology = "text", reservationAffinity = "any" } },
  replicaCount = "count", diskSpec = { title = "diskSpec", fields = { bootDiskType = "text", bootDiskSizeGb = "count" } },
  nfsMounts = { list = { title = "an NFS mount", fields = { server = "text", path = "text", mountPoint = "text" } } },
  lustreMounts = "any",
  containerSpec = { title = "containerSpec", fields = { imageUri = "text", command = "texts", args = "texts", env = env } },
  pythonPackageSpec = { title = "pythonPackageSpec", fields = {
    executorImageUri = "text", packageUris = "texts", pythonModule = "text", args = "texts", env = env } },
}, elsewhere = {
  machineType = "it stands in machineSpec", acceleratorType = "it stands in machineSpec", acceleratorCount = "it stands in machineSpec",
  imageUri = "it stands in containerSpec", machine_type = "it stands in machine_spec", accelerator_type = "it stands in machine_spec",
  accelerator_count = "it stands in machine_spec", image_uri = "it stands in container_spec",
} }

fields.custom_job_spec = { title = "a job specification", transparent = true, fields = {
  workerPoolSpecs = { list = fields.worker_pool },
  scheduling = { title = "scheduling", fields = {
    timeout = "duration", restartJobOnWorkerRestart = "flag", disableRetries = "flag", maxWaitDuration = "duration", strategy = "text" } },
  serviceAccount = "text", network = "text", reservedIpRanges = "texts",
  baseOutputDirectory = { title = "baseOutputDirectory", fields = { outputUriPrefix = "text" } },
  persistentResourceId = "text", enableWebAccess = "flag", enableDashboardAccess = "flag", tensorboard = "text", experiment = "text",
  experimentRun = "text", protectedArtifactLocationId = "text",
} }

-- A CustomJob, or, as gcloud's files have it, what is in its jobSpec.
fields.custom_job = { title = "a CustomJob", fields = {
  displayName = "text", labels = "labels", jobSpec = fields.custom_job_spec, encryptionSpec = { title = "encryptionSpec", fields = {
    kmsKeyName = "text" } },
} }

return fields
