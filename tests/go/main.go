// Google's client before vendors that are silent for 17 seconds in the middle of their answers: a line for each stream that fails.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"google.golang.org/genai"
)

func read(model string) (string, error) {
	ctx := context.Background()
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey:      "any",
		Backend:     genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: os.Getenv("SILENT_ORIGIN")},
	})
	if err != nil {
		return "", err
	}
	text := ""
	for chunk, err := range client.Models.GenerateContentStream(ctx, model, genai.Text("Hello?"), nil) {
		if err != nil {
			return text, err
		}
		text += chunk.Text()
	}
	return text, nil
}

func main() {
	var models []string
	if err := json.Unmarshal([]byte(os.Getenv("SILENT_MODELS")), &models); err != nil {
		panic(err)
	}
	var group sync.WaitGroup
	failed := make([]string, len(models))
	for index, model := range models {
		group.Go(func() {
			text, err := read(model)
			if err != nil || text != os.Getenv("SILENT_TEXT") {
				failed[index] = fmt.Sprintf("%s: %v, read %q", model, err, text)
			}
		})
	}
	group.Wait()
	code := 0
	for _, line := range failed {
		if line != "" {
			fmt.Fprintln(os.Stderr, line)
			code = 1
		}
	}
	os.Exit(code)
}
