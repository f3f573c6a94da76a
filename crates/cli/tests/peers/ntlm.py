"""NTLM and Negotiate by pyspnego, an implementation that is independent of this program.

    ntlm.py serve PORT SCHEME USERS         what an authentication helper of Squid does, for each connection to the port; USERS has
                                            lines DOMAIN:user:password. helper.sh connects Squid with it
    ntlm.py get URL SCHEME USER PASSWORD [PROXY]
                                            requests an URL several times over one connection and prints the statuses
"""

import base64
import http.client
import os
import socketserver
import sys
import urllib.parse


def spnego_context(kind, scheme, **more):
    import spnego

    # Its own implementations, not those of the system.
    own = {"ntlm": spnego.NegotiateOptions.use_ntlm, "negotiate": spnego.NegotiateOptions.use_negotiate}
    return getattr(spnego, kind)(protocol=scheme, options=own[scheme], **more)


def serve(port, scheme, users):
    """The protocol squid-2.5-ntlmssp: YR and KK with a token of the client; TT, AF or NA as the answer."""
    os.environ["NTLM_USER_FILE"] = users

    class Helper(socketserver.StreamRequestHandler):
        def handle(self):
            context = None
            for line in self.rfile:
                command, _, token = line.decode().strip().partition(" ")
                if command == "YR":
                    context = spnego_context("server", scheme)
                self.wfile.write((step(context, token) + "\n").encode())

    def step(context, token):
        try:
            answer = context.step(base64.b64decode(token) if token else None)
        except Exception as error:
            return ("NA = " if scheme == "negotiate" else "NA ") + str(error).replace("\n", " ")
        text = base64.b64encode(answer or b"").decode() or "="
        if not context.complete:
            return "TT " + text
        return "AF " + (text + " " if scheme == "negotiate" else "") + context.client_principal

    socketserver.ThreadingTCPServer.daemon_threads = True
    socketserver.ThreadingTCPServer(("127.0.0.1", int(port)), Helper).serve_forever()


def get(url, scheme, user, password, proxy=None):
    target = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(proxy or target.netloc)
    challenge, answer, refusal = ("WWW-Authenticate", "Authorization", 401)
    if proxy:
        challenge, answer, refusal = ("Proxy-Authenticate", "Proxy-Authorization", 407)
    word = {"ntlm": "NTLM", "negotiate": "Negotiate"}[scheme]

    def ask(token):
        headers = {answer: word + " " + base64.b64encode(token).decode()} if token else {}
        connection.request("GET", url if proxy else target.path, headers=headers)
        reply = connection.getresponse()
        reply.read()
        fields = [text.strip() for field in reply.headers.get_all(challenge, []) for text in field.split(",")]
        given = [field[len(word) + 1:] for field in fields if field.startswith(word + " ")]
        return reply.status, base64.b64decode(given[0]) if given else None

    statuses = [ask(None)[0]]
    context = spnego_context("client", scheme, username=user, password=password)
    token = context.step(None)
    while token:
        status, given = ask(token)
        statuses.append(status)
        if status != refusal or not given:
            break
        token = context.step(given)
    # The connection stays authenticated.
    statuses.append(ask(None)[0])
    print(*statuses)


if __name__ == "__main__":
    {"serve": serve, "get": get}[sys.argv[1]](*sys.argv[2:])
