// Package certtest makes certificate authorities and certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// TB is what is needed of a testing.TB.
type TB interface {
	Helper()
	TempDir() string
	Fatal(args ...any)
}

// Authority signs certificates.
type Authority struct {
	// File is a PEM file with the authority's own certificate.
	File string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority whose certificate holds for an hour.
func New(t TB) *Authority {
	t.Helper()
	a := &Authority{}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	var der []byte
	a.key, der = sign(t, a.cert, a.cert, nil)
	a.File = file(t, "ca.pem", pemOf("CERTIFICATE", der))
	return a
}

// Issue makes a certificate with a common name, for clients and, at the given
// IP addresses, for servers, and gives the PEM files of it and its key.
func (a *Authority) Issue(t TB, name string, ips ...string) (cert, key string) {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, ip := range ips {
		c.IPAddresses = append(c.IPAddresses, net.ParseIP(ip))
	}
	k, der := sign(t, c, a.cert, a.key)
	kder, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, name+".pem", pemOf("CERTIFICATE", der)), file(t, name+".key", pemOf("PRIVATE KEY", kder))
}

func sign(t TB, c, by *x509.Certificate, with *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if with == nil {
		with = k
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &k.PublicKey, with)
	if err != nil {
		t.Fatal(err)
	}
	return k, der
}

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// file writes to a folder of its own: names may come again.
func file(t TB, name, text string) string {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
