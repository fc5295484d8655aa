function mountModels() { return {}; }
