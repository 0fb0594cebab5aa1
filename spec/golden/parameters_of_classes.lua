-- parameters_of_classes.lua: the parameters of Keras 3.15.1's classes. Made by parameters.py.
return {
  ["layers"] = [[
    Activation: activation; ActivityRegularization: l1=0.0 l2=0.0; AdaptiveAveragePooling1D: output_size data_format;
    AdaptiveAveragePooling2D: output_size data_format; AdaptiveAveragePooling3D: output_size data_format; AdaptiveMaxPooling1D:
    output_size data_format; AdaptiveMaxPooling2D: output_size data_format; AdaptiveMaxPooling3D: output_size data_format;
    AdditiveAttention: use_scale=true dropout=0.0; AlphaDropout: rate noise_shape seed; Attention: use_scale=false score_mode=dot
    dropout=0.0 seed; AugMix: value_range num_chains=3 chain_depth=3 factor=0.3 alpha=1.0 all_ops=true interpolation=bilinear seed
    data_format; AutoContrast: value_range; AveragePooling1D: pool_size strides padding=valid data_format name; AveragePooling2D:
    pool_size strides padding=valid data_format name; AveragePooling3D: pool_size strides padding=valid data_format name; AvgPool1D:
    pool_size strides padding=valid data_format name; AvgPool2D: pool_size strides padding=valid data_format name; AvgPool3D: pool_size
    strides padding=valid data_format name; BatchNormalization: axis=-1 momentum=0.99 epsilon=0.001 center=true scale=true
    beta_initializer=zeros gamma_initializer=ones moving_mean_initializer=zeros moving_variance_initializer=ones beta_regularizer
    gamma_regularizer beta_constraint gamma_constraint renorm=false renorm_clipping renorm_momentum=0.99 synchronized=false;
    Bidirectional: layer merge_mode=concat weights backward_layer; CategoryEncoding: num_tokens output_mode=multi_hot sparse=false;
    CenterCrop: height width data_format; Concatenate: axis=-1; ContrastLimitedAdaptiveHistogramEqualization: value_range clip_limit=4.0
    tile_grid_size data_format; Conv1D: filters kernel_size strides=1 padding=valid data_format dilation_rate=1 groups=1 activation
    use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer
    kernel_constraint bias_constraint; Conv1DTranspose: filters kernel_size strides=1 padding=valid output_padding data_format
    dilation_rate=1 activation use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer
    bias_regularizer activity_regularizer kernel_constraint bias_constraint; Conv2D: filters kernel_size strides padding=valid
    data_format dilation_rate groups=1 activation use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros
    kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Conv2DTranspose: filters kernel_size
    strides padding=valid output_padding data_format dilation_rate activation use_bias=true kernel_initializer=glorot_uniform
    bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Conv3D: filters
    kernel_size strides padding=valid data_format dilation_rate groups=1 activation use_bias=true kernel_initializer=glorot_uniform
    bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Conv3DTranspose:
    filters kernel_size strides padding=valid data_format output_padding dilation_rate activation use_bias=true
    kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer kernel_constraint
    bias_constraint; ConvLSTM1D: filters kernel_size strides=1 padding=valid data_format dilation_rate=1 activation=tanh
    recurrent_activation=sigmoid use_bias=true kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros
    unit_forget_bias=true kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint
    recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0 seed return_sequences=false return_state=false
    go_backwards=false stateful=false; ConvLSTM2D: filters kernel_size strides=1 padding=valid data_format dilation_rate=1
    activation=tanh recurrent_activation=sigmoid use_bias=true kernel_initializer=glorot_uniform recurrent_initializer=orthogonal
    bias_initializer=zeros unit_forget_bias=true kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer
    kernel_constraint recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0 seed return_sequences=false
    return_state=false go_backwards=false stateful=false; ConvLSTM3D: filters kernel_size strides=1 padding=valid data_format
    dilation_rate=1 activation=tanh recurrent_activation=sigmoid use_bias=true kernel_initializer=glorot_uniform
    recurrent_initializer=orthogonal bias_initializer=zeros unit_forget_bias=true kernel_regularizer recurrent_regularizer
    bias_regularizer activity_regularizer kernel_constraint recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0 seed
    return_sequences=false return_state=false go_backwards=false stateful=false; Convolution1D: filters kernel_size strides=1
    padding=valid data_format dilation_rate=1 groups=1 activation use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros
    kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Convolution1DTranspose: filters
    kernel_size strides=1 padding=valid output_padding data_format dilation_rate=1 activation use_bias=true
    kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer kernel_constraint
    bias_constraint; Convolution2D: filters kernel_size strides padding=valid data_format dilation_rate groups=1 activation
    use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer
    kernel_constraint bias_constraint; Convolution2DTranspose: filters kernel_size strides padding=valid output_padding data_format
    dilation_rate activation use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer
    activity_regularizer kernel_constraint bias_constraint; Convolution3D: filters kernel_size strides padding=valid data_format
    dilation_rate groups=1 activation use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer
    bias_regularizer activity_regularizer kernel_constraint bias_constraint; Convolution3DTranspose: filters kernel_size strides
    padding=valid data_format output_padding dilation_rate activation use_bias=true kernel_initializer=glorot_uniform
    bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint; Cropping1D:
    cropping; Cropping2D: cropping data_format; Cropping3D: cropping data_format; CutMix: factor=1.0 seed data_format; Dense: units
    activation use_bias=true kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer
    activity_regularizer kernel_constraint bias_constraint lora_rank lora_alpha quantization_config; DepthwiseConv1D: kernel_size
    strides=1 padding=valid depth_multiplier=1 data_format dilation_rate=1 activation use_bias=true depthwise_initializer=glorot_uniform
    bias_initializer=zeros depthwise_regularizer bias_regularizer activity_regularizer depthwise_constraint bias_constraint;
    DepthwiseConv2D: kernel_size strides padding=valid depth_multiplier=1 data_format dilation_rate activation use_bias=true
    depthwise_initializer=glorot_uniform bias_initializer=zeros depthwise_regularizer bias_regularizer activity_regularizer
    depthwise_constraint bias_constraint; Discretization: bin_boundaries num_bins epsilon=0.01 output_mode=int sparse=false dtype name;
    Dot: axes normalize=false; Dropout: rate noise_shape seed; ELU: alpha=1.0; EinsumDense: equation output_shape activation bias_axes
    kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer kernel_constraint bias_constraint
    lora_rank lora_alpha gptq_unpacked_column_size quantization_config; Embedding: input_dim output_dim embeddings_initializer=uniform
    embeddings_regularizer embeddings_constraint mask_zero=false weights lora_rank lora_alpha quantization_config; Equalization:
    value_range bins=256 data_format; Flatten: data_format; FlaxLayer: module method variables; GRU: units activation=tanh
    recurrent_activation=sigmoid use_bias=true kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros
    kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint recurrent_constraint
    bias_constraint dropout=0.0 recurrent_dropout=0.0 seed return_sequences=false return_state=false go_backwards=false stateful=false
    unroll=false reset_after=true use_cudnn=auto; GRUCell: units activation=tanh recurrent_activation=sigmoid use_bias=true
    kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros kernel_regularizer recurrent_regularizer
    bias_regularizer kernel_constraint recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0 reset_after=true seed;
    GaussianDropout: rate seed; GaussianNoise: stddev seed; GlobalAveragePooling1D: data_format keepdims=false; GlobalAveragePooling2D:
    data_format keepdims=false; GlobalAveragePooling3D: data_format keepdims=false; GlobalAvgPool1D: data_format keepdims=false;
    GlobalAvgPool2D: data_format keepdims=false; GlobalAvgPool3D: data_format keepdims=false; GlobalMaxPool1D: data_format
    keepdims=false; GlobalMaxPool2D: data_format keepdims=false; GlobalMaxPool3D: data_format keepdims=false; GlobalMaxPooling1D:
    data_format keepdims=false; GlobalMaxPooling2D: data_format keepdims=false; GlobalMaxPooling3D: data_format keepdims=false;
    GroupNormalization: groups=32 axis=-1 epsilon=0.001 center=true scale=true beta_initializer=zeros gamma_initializer=ones
    beta_regularizer gamma_regularizer beta_constraint gamma_constraint; GroupQueryAttention: head_dim num_query_heads
    num_key_value_heads dropout=0.0 use_bias=true sliding_window flash_attention kernel_initializer=glorot_uniform
    bias_initializer=zeros kernel_regularizer bias_regularizer activity_regularizer kernel_constraint bias_constraint use_gate=false
    seed; HashedCrossing: num_bins output_mode=int sparse=false name dtype; Hashing: num_bins mask_value salt output_mode=int
    sparse=false; Input: shape batch_size dtype sparse ragged batch_shape name tensor optional=false; InputLayer: shape batch_size dtype
    sparse ragged batch_shape input_tensor optional=false name; InputSpec: dtype shape ndim max_ndim min_ndim axes
    allow_last_axis_squeeze=false name optional=false; IntegerLookup: max_tokens num_oov_indices=1 mask_token oov_token=-1 vocabulary
    vocabulary_dtype=int64 idf_weights invert=false output_mode=int sparse=false pad_to_max_tokens=false oov_method=floormod salt name;
    JaxLayer: call_fn init_fn params state seed native_serialization_platforms; LSTM: units activation=tanh recurrent_activation=sigmoid
    use_bias=true kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros unit_forget_bias=true
    kernel_regularizer recurrent_regularizer bias_regularizer activity_regularizer kernel_constraint recurrent_constraint
    bias_constraint dropout=0.0 recurrent_dropout=0.0 seed return_sequences=false return_state=false go_backwards=false stateful=false
    unroll=false use_cudnn=auto; LSTMCell: units activation=tanh recurrent_activation=sigmoid use_bias=true
    kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros unit_forget_bias=true kernel_regularizer
    recurrent_regularizer bias_regularizer kernel_constraint recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0
    seed; Lambda: function output_shape mask arguments; Layer: activity_regularizer trainable=true dtype autocast=true name;
    LayerNormalization: axis=-1 epsilon=0.001 center=true scale=true beta_initializer=zeros gamma_initializer=ones beta_regularizer
    gamma_regularizer beta_constraint gamma_constraint; LeakyReLU: negative_slope=0.3; Masking: mask_value=0.0; MaxNumBoundingBoxes:
    max_number fill_value=-1; MaxPool1D: pool_size=2 strides padding=valid data_format name; MaxPool2D: pool_size strides padding=valid
    data_format name; MaxPool3D: pool_size strides padding=valid data_format name; MaxPooling1D: pool_size=2 strides padding=valid
    data_format name; MaxPooling2D: pool_size strides padding=valid data_format name; MaxPooling3D: pool_size strides padding=valid
    data_format name; MelSpectrogram: fft_length=2048 sequence_stride=512 sequence_length window=hann sampling_rate=16000
    num_mel_bins=128 min_freq=20.0 max_freq power_to_db=true top_db=80.0 mag_exp=2.0 min_power=1e-10 ref_power=1.0; MixUp: alpha=0.2
    data_format seed; MultiHeadAttention: num_heads key_dim value_dim dropout=0.0 use_bias=true output_shape attention_axes
    sliding_window flash_attention kernel_initializer=glorot_uniform bias_initializer=zeros kernel_regularizer bias_regularizer
    activity_regularizer kernel_constraint bias_constraint use_gate=false seed; Normalization: axis=-1 mean variance invert=false;
    PReLU: alpha_initializer=Zeros alpha_regularizer alpha_constraint shared_axes; Permute: dims; Pipeline: layers name;
    RMSNormalization: axis=-1 epsilon=1e-06; RNN: cell return_sequences=false return_state=false go_backwards=false stateful=false
    unroll=false zero_output_for_mask=false; RandAugment: value_range num_ops=2 factor=0.5 interpolation=bilinear seed data_format;
    RandomBrightness: factor value_range seed; RandomColorDegeneration: factor value_range data_format seed; RandomColorJitter:
    value_range brightness_factor contrast_factor saturation_factor hue_factor seed data_format; RandomContrast: factor value_range
    seed; RandomCrop: height width seed data_format name; RandomElasticTransform: factor=1.0 scale=1.0 interpolation=bilinear
    fill_mode=reflect fill_value=0.0 value_range seed data_format; RandomErasing: factor=1.0 scale fill_value value_range seed
    data_format; RandomFlip: mode=horizontal_and_vertical seed data_format; RandomGaussianBlur: factor=1.0 kernel_size=3 sigma=1.0
    value_range data_format seed; RandomGrayscale: factor=0.5 data_format seed; RandomHue: factor value_range data_format seed;
    RandomInvert: factor=1.0 value_range seed data_format; RandomPerspective: factor=1.0 scale=1.0 interpolation=bilinear fill_value=0.0
    seed data_format; RandomPosterization: factor value_range data_format seed; RandomRotation: factor fill_mode=reflect
    interpolation=bilinear seed fill_value=0.0 data_format; RandomSaturation: factor value_range data_format seed; RandomSharpness:
    factor value_range data_format seed; RandomShear: x_factor=0.0 y_factor=0.0 interpolation=bilinear fill_mode=reflect fill_value=0.0
    data_format seed; RandomTranslation: height_factor width_factor fill_mode=reflect interpolation=bilinear seed fill_value=0.0
    data_format; RandomZoom: height_factor width_factor fill_mode=reflect interpolation=bilinear seed fill_value=0.0 data_format; ReLU:
    max_value negative_slope=0.0 threshold=0.0; RepeatVector: n; Rescaling: scale offset=0.0; Reshape: target_shape; Resizing: height
    width interpolation=bilinear crop_to_aspect_ratio=false pad_to_aspect_ratio=false fill_mode=constant fill_value=0.0 antialias=false
    data_format; ReversibleEmbedding: input_dim output_dim tie_weights=true embeddings_initializer=uniform embeddings_regularizer
    embeddings_constraint mask_zero=false reverse_dtype logit_soft_cap; STFTSpectrogram: mode=log frame_length=256 frame_step fft_length
    window=hann periodic=false scaling=density padding=valid expand_dims=false data_format; SeparableConv1D: filters kernel_size
    strides=1 padding=valid data_format dilation_rate=1 depth_multiplier=1 activation use_bias=true depthwise_initializer=glorot_uniform
    pointwise_initializer=glorot_uniform bias_initializer=zeros depthwise_regularizer pointwise_regularizer bias_regularizer
    activity_regularizer depthwise_constraint pointwise_constraint bias_constraint; SeparableConv2D: filters kernel_size strides
    padding=valid data_format dilation_rate depth_multiplier=1 activation use_bias=true depthwise_initializer=glorot_uniform
    pointwise_initializer=glorot_uniform bias_initializer=zeros depthwise_regularizer pointwise_regularizer bias_regularizer
    activity_regularizer depthwise_constraint pointwise_constraint bias_constraint; SeparableConvolution1D: filters kernel_size
    strides=1 padding=valid data_format dilation_rate=1 depth_multiplier=1 activation use_bias=true depthwise_initializer=glorot_uniform
    pointwise_initializer=glorot_uniform bias_initializer=zeros depthwise_regularizer pointwise_regularizer bias_regularizer
    activity_regularizer depthwise_constraint pointwise_constraint bias_constraint; SeparableConvolution2D: filters kernel_size strides
    padding=valid data_format dilation_rate depth_multiplier=1 activation use_bias=true depthwise_initializer=glorot_uniform
    pointwise_initializer=glorot_uniform bias_initializer=zeros depthwise_regularizer pointwise_regularizer bias_regularizer
    activity_regularizer depthwise_constraint pointwise_constraint bias_constraint; SimpleRNN: units activation=tanh use_bias=true
    kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros kernel_regularizer recurrent_regularizer
    bias_regularizer activity_regularizer kernel_constraint recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0
    return_sequences=false return_state=false go_backwards=false stateful=false unroll=false seed; SimpleRNNCell: units activation=tanh
    use_bias=true kernel_initializer=glorot_uniform recurrent_initializer=orthogonal bias_initializer=zeros kernel_regularizer
    recurrent_regularizer bias_regularizer kernel_constraint recurrent_constraint bias_constraint dropout=0.0 recurrent_dropout=0.0
    seed; Softmax: axis=-1; Solarization: addition_factor=0.0 threshold_factor=0.0 value_range seed; SpatialDropout1D: rate seed name
    dtype; SpatialDropout2D: rate data_format seed name dtype; SpatialDropout3D: rate data_format seed name dtype;
    SpectralNormalization: layer power_iterations=1; StackedRNNCells: cells; StringLookup: max_tokens num_oov_indices=1 mask_token
    oov_token vocabulary idf_weights invert=false output_mode=int pad_to_max_tokens=false sparse=false encoding=utf-8 name salt;
    TFSMLayer: filepath call_endpoint=serve call_training_endpoint trainable=true name dtype; TextVectorization: max_tokens
    standardize=lower_and_strip_punctuation split=whitespace ngrams output_mode=int output_sequence_length pad_to_max_tokens=false
    vocabulary idf_weights sparse=false ragged=false encoding=utf-8 name; TimeDistributed: layer; TorchModuleWrapper: module name
    output_shape; UnitNormalization: axis=-1; UpSampling1D: size=2; UpSampling2D: size data_format interpolation=nearest; UpSampling3D:
    size data_format; Wrapper: layer; ZeroPadding1D: padding=1 data_format; ZeroPadding2D: padding data_format; ZeroPadding3D: padding
    data_format; add: inputs; average: inputs; concatenate: inputs axis=-1; deserialize: config custom_objects; dot: inputs axes=-1;
    maximum: inputs; minimum: inputs; multiply: inputs; serialize: layer; subtract: inputs;
  ]],
  ["losses"] = [[
    BinaryCrossentropy: from_logits=false label_smoothing=0.0 axis=-1 reduction=sum_over_batch_size name=binary_crossentropy dtype;
    BinaryFocalCrossentropy: apply_class_balancing=false alpha=0.25 gamma=2.0 from_logits=false label_smoothing=0.0 axis=-1
    reduction=sum_over_batch_size name=binary_focal_crossentropy dtype; CTC: reduction=sum_over_batch_size name=ctc dtype;
    CategoricalCrossentropy: from_logits=false label_smoothing=0.0 axis=-1 reduction=sum_over_batch_size name=categorical_crossentropy
    dtype; CategoricalFocalCrossentropy: alpha=0.25 gamma=2.0 from_logits=false label_smoothing=0.0 axis=-1
    reduction=sum_over_batch_size name=categorical_focal_crossentropy dtype; CategoricalGeneralizedCrossEntropy: q=0.5
    reduction=sum_over_batch_size name=categorical_generalized_cross_entropy dtype; CategoricalHinge: reduction=sum_over_batch_size
    name=categorical_hinge dtype; Circle: gamma=80.0 margin=0.4 remove_diagonal=true reduction=sum_over_batch_size name=circle dtype;
    CosineSimilarity: axis=-1 reduction=sum_over_batch_size name=cosine_similarity dtype; Dice: reduction=sum_over_batch_size name=dice
    axis dtype; Hinge: reduction=sum_over_batch_size name=hinge dtype; Huber: delta=1.0 reduction=sum_over_batch_size name=huber_loss
    dtype; KLDivergence: reduction=sum_over_batch_size name=kl_divergence dtype; LogCosh: reduction=sum_over_batch_size name=log_cosh
    dtype; Loss: name reduction=sum_over_batch_size dtype; MeanAbsoluteError: reduction=sum_over_batch_size name=mean_absolute_error
    dtype; MeanAbsolutePercentageError: reduction=sum_over_batch_size name=mean_absolute_percentage_error dtype; MeanSquaredError:
    reduction=sum_over_batch_size name=mean_squared_error dtype; MeanSquaredLogarithmicError: reduction=sum_over_batch_size
    name=mean_squared_logarithmic_error dtype; Poisson: reduction=sum_over_batch_size name=poisson dtype; SparseCategoricalCrossentropy:
    from_logits=false ignore_class reduction=sum_over_batch_size axis=-1 name=sparse_categorical_crossentropy dtype; SquaredHinge:
    reduction=sum_over_batch_size name=squared_hinge dtype; Tversky: alpha=0.5 beta=0.5 reduction=sum_over_batch_size name=tversky axis
    dtype; binary_crossentropy: y_true y_pred from_logits=false label_smoothing=0.0 axis=-1; binary_focal_crossentropy: y_true y_pred
    apply_class_balancing=false alpha=0.25 gamma=2.0 from_logits=false label_smoothing=0.0 axis=-1; categorical_crossentropy: y_true
    y_pred from_logits=false label_smoothing=0.0 axis=-1; categorical_focal_crossentropy: y_true y_pred alpha=0.25 gamma=2.0
    from_logits=false label_smoothing=0.0 axis=-1; categorical_generalized_cross_entropy: y_true y_pred q; categorical_hinge: y_true
    y_pred; circle: y_true y_pred ref_labels ref_embeddings remove_diagonal=true gamma=80 margin=0.4; cosine_similarity: y_true y_pred
    axis=-1; ctc: y_true y_pred; deserialize: name custom_objects; dice: y_true y_pred axis; get: identifier; hinge: y_true y_pred;
    huber: y_true y_pred delta=1.0; kl_divergence: y_true y_pred; log_cosh: y_true y_pred; mean_absolute_error: y_true y_pred;
    mean_absolute_percentage_error: y_true y_pred; mean_squared_error: y_true y_pred; mean_squared_logarithmic_error: y_true y_pred;
    poisson: y_true y_pred; serialize: loss; sparse_categorical_crossentropy: y_true y_pred from_logits=false ignore_class axis=-1;
    squared_hinge: y_true y_pred; tversky: y_true y_pred alpha=0.5 beta=0.5 axis;
  ]],
  ["metrics"] = [[
    AUC: num_thresholds=200 curve=ROC summation_method=interpolation name dtype thresholds multi_label=false num_labels label_weights
    from_logits=false; Accuracy: name=accuracy dtype; BinaryAccuracy: name=binary_accuracy dtype threshold=0.5; BinaryCrossentropy:
    name=binary_crossentropy dtype from_logits=false label_smoothing=0; BinaryIoU: target_class_ids threshold=0.5 name dtype;
    CategoricalAccuracy: name=categorical_accuracy dtype; CategoricalCrossentropy: name=categorical_crossentropy dtype from_logits=false
    label_smoothing=0 axis=-1; CategoricalHinge: name=categorical_hinge dtype; ConcordanceCorrelation: name=concordance_correlation
    dtype axis=-1; CosineSimilarity: name=cosine_similarity dtype axis=-1; F1Score: average threshold name=f1_score dtype; FBetaScore:
    average beta=1.0 threshold name=fbeta_score dtype; FalseNegatives: thresholds name dtype; FalsePositives: thresholds name dtype;
    Hinge: name=hinge dtype; IoU: num_classes target_class_ids name dtype ignore_class sparse_y_true=true sparse_y_pred=true axis=-1;
    KLDivergence: name=kl_divergence dtype; LogCoshError: name=logcosh dtype; Mean: name=mean dtype; MeanAbsoluteError:
    name=mean_absolute_error dtype; MeanAbsolutePercentageError: name=mean_absolute_percentage_error dtype; MeanIoU: num_classes name
    dtype ignore_class sparse_y_true=true sparse_y_pred=true axis=-1; MeanMetricWrapper: fn name dtype; MeanSquaredError:
    name=mean_squared_error dtype; MeanSquaredLogarithmicError: name=mean_squared_logarithmic_error dtype; Metric: dtype name;
    OneHotIoU: num_classes target_class_ids name dtype ignore_class sparse_y_pred=false axis=-1; OneHotMeanIoU: num_classes name dtype
    ignore_class sparse_y_pred=false axis=-1; PearsonCorrelation: name=pearson_correlation dtype axis=-1; Poisson: name=poisson dtype;
    Precision: thresholds top_k class_id name dtype; PrecisionAtRecall: recall num_thresholds=200 class_id name dtype; R2Score:
    class_aggregation=uniform_average num_regressors=0 name=r2_score dtype; Recall: thresholds top_k class_id name dtype;
    RecallAtPrecision: precision num_thresholds=200 class_id name dtype; RootMeanSquaredError: name=root_mean_squared_error dtype;
    SensitivityAtSpecificity: specificity num_thresholds=200 class_id name dtype; SparseCategoricalAccuracy:
    name=sparse_categorical_accuracy dtype; SparseCategoricalCrossentropy: name=sparse_categorical_crossentropy dtype from_logits=false
    ignore_class axis=-1; SparseTopKCategoricalAccuracy: k=5 name=sparse_top_k_categorical_accuracy dtype from_sorted_ids=false;
    SpecificityAtSensitivity: sensitivity num_thresholds=200 class_id name dtype; SquaredHinge: name=squared_hinge dtype; Sum: name=sum
    dtype; TopKCategoricalAccuracy: k=5 name=top_k_categorical_accuracy dtype; TrueNegatives: thresholds name dtype; TruePositives:
    thresholds name dtype; binary_accuracy: y_true y_pred threshold=0.5; binary_crossentropy: y_true y_pred from_logits=false
    label_smoothing=0.0 axis=-1; binary_focal_crossentropy: y_true y_pred apply_class_balancing=false alpha=0.25 gamma=2.0
    from_logits=false label_smoothing=0.0 axis=-1; categorical_accuracy: y_true y_pred; categorical_crossentropy: y_true y_pred
    from_logits=false label_smoothing=0.0 axis=-1; categorical_focal_crossentropy: y_true y_pred alpha=0.25 gamma=2.0 from_logits=false
    label_smoothing=0.0 axis=-1; categorical_hinge: y_true y_pred; concordance_correlation: y_true y_pred axis=-1; deserialize: config
    custom_objects; get: identifier; hinge: y_true y_pred; huber: y_true y_pred delta=1.0; kl_divergence: y_true y_pred; log_cosh:
    y_true y_pred; mean_absolute_error: y_true y_pred; mean_absolute_percentage_error: y_true y_pred; mean_squared_error: y_true y_pred;
    mean_squared_logarithmic_error: y_true y_pred; pearson_correlation: y_true y_pred axis=-1; poisson: y_true y_pred; serialize:
    metric; sparse_categorical_accuracy: y_true y_pred; sparse_categorical_crossentropy: y_true y_pred from_logits=false ignore_class
    axis=-1; sparse_top_k_categorical_accuracy: y_true y_pred k=5 from_sorted_ids=false; squared_hinge: y_true y_pred;
    top_k_categorical_accuracy: y_true y_pred k=5;
  ]],
  ["callbacks"] = [[
    BackupAndRestore: backup_dir save_freq=epoch double_checkpoint=false delete_checkpoint=true; CSVLogger: filename separator
    append=false; CallbackList: callbacks add_history=false add_progbar=false model; EarlyStopping: monitor=val_loss min_delta=0
    patience=0 verbose=0 mode=auto baseline restore_best_weights=false start_from_epoch=0; LambdaCallback: on_epoch_begin on_epoch_end
    on_train_begin on_train_end on_train_batch_begin on_train_batch_end; LearningRateScheduler: schedule verbose=0; ModelCheckpoint:
    filepath monitor=val_loss verbose=0 save_best_only=false save_weights_only=false mode=auto save_freq=epoch initial_value_threshold;
    OrbaxCheckpoint: directory monitor=val_loss verbose=0 save_best_only=false mode=auto save_freq=epoch initial_value_threshold
    max_to_keep=1 save_on_background=true save_weights_only=false; ReduceLROnPlateau: monitor=val_loss factor=0.1 patience=10 verbose=0
    mode=auto min_delta=0.0001 cooldown=0 min_lr=0.0; RemoteMonitor: root path field=data headers send_as_json=false; SwapEMAWeights:
    swap_on_epoch=false; TensorBoard: log_dir=logs histogram_freq=0 write_graph=true write_images=false write_steps_per_second=false
    update_freq=epoch profile_batch=0 embeddings_freq=0 embeddings_metadata; TerminateOnNaN: raise_error=false;
  ]],
  ["optimizers"] = [[
    Adadelta: learning_rate=0.001 rho=0.95 epsilon=1e-07 weight_decay clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99
    ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; Adafactor: learning_rate=0.001 beta_2_decay=-0.8
    epsilon_1=1e-30 epsilon_2=0.001 clip_threshold=1.0 relative_step=true weight_decay clipnorm clipvalue global_clipnorm use_ema=false
    ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; Adagrad: learning_rate=0.001
    initial_accumulator_value=0.1 epsilon=1e-07 weight_decay clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99
    ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; Adam: learning_rate=0.001 beta_1=0.9 beta_2=0.999
    epsilon=1e-07 amsgrad=false weight_decay clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency
    loss_scale_factor gradient_accumulation_steps name; AdamW: learning_rate=0.001 weight_decay=0.004 beta_1=0.9 beta_2=0.999
    epsilon=1e-07 amsgrad=false clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency
    loss_scale_factor gradient_accumulation_steps name; Adamax: learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-07 weight_decay
    clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor
    gradient_accumulation_steps name; Ftrl: learning_rate=0.001 learning_rate_power=-0.5 initial_accumulator_value=0.1
    l1_regularization_strength=0.0 l2_regularization_strength=0.0 l2_shrinkage_regularization_strength=0.0 beta=0.0 weight_decay
    clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor
    gradient_accumulation_steps name; Lamb: learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-07 weight_decay clipnorm clipvalue
    global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; Lion:
    learning_rate=0.001 beta_1=0.9 beta_2=0.99 weight_decay clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99
    ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name; LossScaleOptimizer: inner_optimizer
    initial_scale=32768.0 dynamic_growth_steps=2000 name; MultiOptimizer: optimizer_map loss_scale_factor name; Muon:
    learning_rate=0.001 adam_beta_1=0.9 adam_beta_2=0.999 adam_weight_decay=0.004 epsilon=1e-07 weight_decay=0.004 clipnorm clipvalue
    global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name
    exclude_layers exclude_embeddings=true muon_a=3.4445 muon_b=-4.775 muon_c=2.0315 adam_lr_ratio=1 momentum=0.95 ns_steps=5
    nesterov=true rms_rate=0.2; Nadam: learning_rate=0.001 beta_1=0.9 beta_2=0.999 epsilon=1e-07 weight_decay clipnorm clipvalue
    global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name;
    OptimizerMap: default_optimizer optimizer_map; RMSprop: learning_rate=0.001 rho=0.9 momentum=0.0 epsilon=1e-07 centered=false
    weight_decay clipnorm clipvalue global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor
    gradient_accumulation_steps name; SGD: learning_rate=0.01 momentum=0.0 nesterov=false weight_decay clipnorm clipvalue
    global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name;
    ScheduleFreeAdamW: learning_rate=0.0025 beta_1=0.9 beta_2=0.999 epsilon=1e-08 warmup_steps=0 weight_decay clipnorm clipvalue
    global_clipnorm use_ema=false ema_momentum=0.99 ema_overwrite_frequency loss_scale_factor gradient_accumulation_steps name;
    deserialize: config custom_objects; get: identifier; serialize: optimizer;
  ]],
  ["optimizers.schedules"] = [[
    CosineDecay: initial_learning_rate decay_steps alpha=0.0 name=CosineDecay warmup_target warmup_steps=0; CosineDecayRestarts:
    initial_learning_rate first_decay_steps t_mul=2.0 m_mul=1.0 alpha=0.0 name=SGDRDecay; ExponentialDecay: initial_learning_rate
    decay_steps decay_rate staircase=false name=ExponentialDecay; InverseTimeDecay: initial_learning_rate decay_steps decay_rate
    staircase=false name=InverseTimeDecay; PiecewiseConstantDecay: boundaries values name=PiecewiseConstant; PolynomialDecay:
    initial_learning_rate decay_steps end_learning_rate=0.0001 power=1.0 cycle=false name=PolynomialDecay; deserialize: config
    custom_objects; serialize: learning_rate_schedule;
  ]],
  ["initializers"] = [[
    Constant: value=0.0; GlorotNormal: seed input_axes output_axes; GlorotUniform: seed input_axes output_axes; HeNormal: seed
    input_axes output_axes; HeUniform: seed input_axes output_axes; Identity: gain=1.0; IdentityInitializer: gain=1.0; LecunNormal: seed
    input_axes output_axes; LecunUniform: seed input_axes output_axes; Orthogonal: gain=1.0 seed; OrthogonalInitializer: gain=1.0 seed;
    RandomNormal: mean=0.0 stddev=0.05 seed; RandomUniform: minval=-0.05 maxval=0.05 seed; STFT: side=real window=hann scaling=density
    periodic=false; STFTInitializer: side=real window=hann scaling=density periodic=false; TruncatedNormal: mean=0.0 stddev=0.05 seed;
    VarianceScaling: scale=1.0 mode=fan_in distribution=truncated_normal seed input_axes output_axes; constant: value=0.0; deserialize:
    config custom_objects; get: identifier; glorot_normal: seed input_axes output_axes; glorot_uniform: seed input_axes output_axes;
    he_normal: seed input_axes output_axes; he_uniform: seed input_axes output_axes; identity: gain=1.0; lecun_normal: seed input_axes
    output_axes; lecun_uniform: seed input_axes output_axes; orthogonal: gain=1.0 seed; random_normal: mean=0.0 stddev=0.05 seed;
    random_uniform: minval=-0.05 maxval=0.05 seed; serialize: initializer; stft: side=real window=hann scaling=density periodic=false;
    truncated_normal: mean=0.0 stddev=0.05 seed; variance_scaling: scale=1.0 mode=fan_in distribution=truncated_normal seed input_axes
    output_axes;
  ]],
  ["regularizers"] = [[
    L1: l1=0.01; L1L2: l1=0.0 l2=0.0; L2: l2=0.01; OrthogonalRegularizer: factor=0.01 mode=rows; deserialize: config custom_objects;
    get: identifier; l1: l1=0.01; l1_l2: l1=0.0 l2=0.0; l2: l2=0.01; orthogonal_regularizer: factor=0.01 mode=rows; serialize:
    regularizer;
  ]],
  ["constraints"] = [[
    MaxNorm: max_value=2 axis=0; MinMaxNorm: min_value=0.0 max_value=1.0 rate=1.0 axis=0; UnitNorm: axis=0; deserialize: config
    custom_objects; get: identifier; max_norm: max_value=2 axis=0; min_max_norm: min_value=0.0 max_value=1.0 rate=1.0 axis=0; serialize:
    constraint; unit_norm: axis=0;
  ]],
}
