# Varnish as a device under test. README.md says what each setting is for.

vcl 4.1;

import directors;
import std;

{% for origin in origins %}
backend origin{{ loop.index }} {
    .host = "{{ origin.ip }}";
    .port = "{{ origin.port }}";
    .connect_timeout = 10s;
    .first_byte_timeout = 120s;
    .between_bytes_timeout = 120s;
}
{% endfor %}

sub vcl_init {
    new pool = directors.round_robin();
{% for origin in origins %}
    pool.add_backend(origin{{ loop.index }});
{% endfor %}
}

sub vcl_recv {
    set req.backend_hint = pool.backend();
{% if reload == "honour" %}
    if (req.http.Cache-Control ~ "no-cache" || req.http.Pragma ~ "no-cache") {
        set req.hash_always_miss = true;
    }
{% endif %}
}

sub vcl_backend_response {
    # Stale replies and replies that wait for a fetch under way are no hits of the standard's kind.
    set beresp.grace = 0s;
    if (std.integer(beresp.http.Content-Length, 0) > {{ max_object }}) {
        set beresp.uncacheable = true;
    }
}

sub vcl_deliver {
    # Decompressed for a client, the body is no longer the one that was digested.
    if (resp.http.Content-Encoding == "gzip" && req.http.Accept-Encoding !~ "gzip") {
        unset resp.http.Content-MD5;
    }
}
