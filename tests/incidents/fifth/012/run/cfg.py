optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.02, momentum=0.9, weight_decay=0.0001))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(type='MultiStepLR', begin=0, end=6, by_epoch=False, milestones=[600, 800, 900, 1000], gamma=0.1)
]
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=6, val_interval=1)
train_dataloader = dict(batch_size=4, num_workers=4)
