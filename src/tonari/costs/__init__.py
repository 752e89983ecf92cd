"""What a search takes, in seconds: one model, fitted to measurements.

model.py   costs of brute force, trees and NN-Descent by instruction set or device
"""
