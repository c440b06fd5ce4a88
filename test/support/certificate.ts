/**
 * A certificate for localhost and 127.0.0.1 that signs itself, 2020 to 2120, and its key. They protect nothing:
 * they let tests run TLS servers on loopback.
 */
export const certificate = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBaDCCAQ2gAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABCqivfKEgE9RuDvc
pvalkgcqbY5T4Ttvdj4Cv/UEl7q/cR4P/g4XfnuIKQ3yIHrvTpaGcTM8zAgeyiO7
Hnbyy42jTjBMMA8GA1UdEwEB/wQFMAMBAf8wGgYDVR0RBBMwEYIJbG9jYWxob3N0
hwR/AAABMB0GA1UdDgQWBBT5oCmbShuo6FvxoM+BeobOTzdYJjAKBggqhkjOPQQD
AgNJADBGAiEArE8nxBx7wev7MCtWZ7i9E3egKd+O6TkHn6qTmIZQsHsCIQCtqpOO
/g9R8IZ7StTZlSQT0dT9nunNv2r/7jx3eiMHcw==
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgIz1zy67+x+aCi9it
oMONXZdFfb7ddqcwpR3aX5ZrGcOhRANCAAQqor3yhIBPUbg73Kb2pZIHKm2OU+E7
b3Y+Ar/1BJe6v3EeD/4OF357iCkN8iB6706WhnEzPMwIHsojux528suN
-----END PRIVATE KEY-----
`,
}
