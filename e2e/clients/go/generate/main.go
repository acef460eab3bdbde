// Generate makes Go of a proto file, as protoc would, but without it: protocompile reads the file,
// protoc-gen-go and protoc-gen-go-grpc write Go. All of them come with the module.
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// protoModule is what the go_package of the proto begins with.
const protoModule = "injectd.dev/api"

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: generate PROTO_DIR FILE")
	}
	if err := generate(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func generate(dir, file string) error {
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(
			&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), file)
	if err != nil {
		return err
	}
	// The file names its own package; what is below the module's path becomes a folder here.
	parameter := "module=" + protoModule
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{file},
		Parameter:      &parameter,
		ProtoFile:      descriptors(files[0], nil),
	})
	if err != nil {
		return err
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		if err := run(plugin, request); err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return nil
}

// descriptors adds a file, and what it imports before it.
func descriptors(file protoreflect.FileDescriptor, known []*descriptorpb.FileDescriptorProto) []*descriptorpb.FileDescriptorProto {
	for _, other := range known {
		if other.GetName() == file.Path() {
			return known
		}
	}
	imports := file.Imports()
	for i := range imports.Len() {
		known = descriptors(imports.Get(i).FileDescriptor, known)
	}
	return append(known, protodesc.ToFileDescriptorProto(file))
}

// run asks a plugin for its files and writes them below the working directory.
func run(plugin string, request []byte) error {
	command := exec.Command("go", "tool", plugin)
	command.Stdin, command.Stderr = bytes.NewReader(request), os.Stderr
	out, err := command.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", *response.Error)
	}
	for _, file := range response.File {
		if err := os.MkdirAll(filepath.Dir(file.GetName()), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file.GetName(), []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
