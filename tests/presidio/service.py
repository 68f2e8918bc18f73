"""POST /analyze as presidio-analyzer's own service answers it, around its real engine. Writes its port as the first line."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import spacy
from presidio_analyzer import AnalyzerEngine, AnalyzerRequest, RecognizerRegistry
from presidio_analyzer.nlp_engine import SpacyNlpEngine

LANGUAGES = ["en", "es", "de"]


class WithoutModels(SpacyNlpEngine):
    """Splits texts into words only: trained models are not among the packages, so no names of people or places are found."""

    def __init__(self):
        super().__init__(models=[{"lang_code": language, "model_name": "blank"} for language in LANGUAGES])
        self.nlp = {language: spacy.blank(language) for language in LANGUAGES}

    def load(self):
        pass


def engine():
    words = WithoutModels()
    registry = RecognizerRegistry(supported_languages=LANGUAGES)
    registry.load_predefined_recognizers(languages=LANGUAGES, nlp_engine=words)
    return AnalyzerEngine(registry=registry, nlp_engine=words, supported_languages=LANGUAGES)


class Service(BaseHTTPRequestHandler):
    analyzer = engine()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path != "/analyze":
            return self.answer(404, {"error": "not found"})
        try:
            asked = AnalyzerRequest(json.loads(body))
            if not asked.text:
                raise Exception("No text provided")
            if not asked.language:
                raise Exception("No language provided")
            found = self.analyzer.analyze(
                text=asked.text,
                language=asked.language,
                entities=asked.entities,
                score_threshold=asked.score_threshold,
            )
        except Exception as error:
            return self.answer(500, {"error": str(error)})
        self.answer(200, [one.to_dict() for one in found])

    def answer(self, status, value):
        body = json.dumps(value, sort_keys=True).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
print(server.server_port, flush=True)
server.serve_forever()
