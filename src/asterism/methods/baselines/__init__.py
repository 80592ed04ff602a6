"""What users would pick instead: classical methods of scikit-learn in our contract."""
