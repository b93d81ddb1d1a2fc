#!/bin/bash

# Parameters
#SBATCH --constraint=tesla_v100
#SBATCH --cpus-per-task=10
#SBATCH --error=/home/mlu/ssl/logs/%j_0_log.err
#SBATCH --gpus-per-node=4
#SBATCH --job-name=ssl_vits
#SBATCH --mem=450GB
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --open-mode=append
#SBATCH --output=/home/mlu/ssl/logs/%j_0_log.out
#SBATCH --partition=gpu_long
#SBATCH --signal=USR2@120
#SBATCH --time=1440
#SBATCH --wckey=submitit

# command
export SUBMITIT_EXECUTOR=slurm
srun --unbuffered --output /home/mlu/ssl/logs/%j_%t_log.out --error /home/mlu/ssl/logs/%j_%t_log.err python -u -m submitit.core._submit /home/mlu/ssl/logs
