function mountLanguage() { return {}; }
