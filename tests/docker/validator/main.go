// Package main reads manifests from standard input and says what an API server would refuse: it decodes them strictly, defaults and
// validates them with the API server's own code, holds pods against the Pod Security Standard "restricted", and decodes what belongs
// to the Prometheus operator strictly, with its rules.
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

var strategies = map[string]rest.RESTCreateStrategy{
	"StatefulSet":             statefulset.Strategy,
	"HorizontalPodAutoscaler": horizontalpodautoscaler.Strategy,
	"Job":                     job.Strategy,
	"ConfigMap":               configmap.Strategy,
	"Service":                 service.Strategy,
	"ServiceAccount":          serviceaccount.Strategy,
	"Ingress":                 ingress.Strategy,
	"NetworkPolicy":           networkpolicy.Strategy,
	"PodDisruptionBudget":     poddisruptionbudget.Strategy,
}

func main() {
	security, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err)
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	isWrong := false
	for {
		text, err := reader.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			panic(err)
		}
		kind := metav1.PartialObjectMetadata{}
		if err := yaml.Unmarshal(text, &kind); err != nil {
			fmt.Println(err)
			isWrong = true
			continue
		}
		if kind.Kind == "" {
			continue
		}
		problems, how := check(text, kind, security)
		for _, problem := range problems {
			isWrong = true
			fmt.Printf("%s %s: %s\n", kind.Kind, kind.Name, problem)
		}
		if len(problems) == 0 {
			fmt.Printf("%s %s: %s\n", kind.Kind, kind.Name, how)
		}
	}
	if isWrong {
		os.Exit(1)
	}
}

func check(text []byte, kind metav1.PartialObjectMetadata, security policy.Evaluator) (problems []string, how string) {
	switch group := kind.GroupVersionKind().Group; {
	case group == "monitoring.coreos.com":
		return checkMonitoring(text, kind.Kind), "valid"
	case legacyscheme.Scheme.IsGroupRegistered(group):
		return checkBuiltIn(text, kind.Kind, security), "valid"
	default:
		return nil, "not validated: a kind of others"
	}
}

func checkBuiltIn(text []byte, kind string, security policy.Evaluator) []string {
	strategy, isKnown := strategies[kind]
	if !isKnown {
		return []string{"no strategy is known for this kind"}
	}
	codecs := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	external, _, err := codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return []string{err.Error()}
	}
	problems := insecurities(external, security)
	legacyscheme.Scheme.Default(external)
	internal, err := legacyscheme.Scheme.ConvertToVersion(external, runtime.InternalGroupVersioner)
	if err != nil {
		return append(problems, err.Error())
	}
	accessor, err := meta.Accessor(internal)
	if err != nil {
		return append(problems, err.Error())
	}
	if accessor.GetNamespace() == "" {
		accessor.SetNamespace(metav1.NamespaceDefault)
	}
	resource, _ := meta.UnsafeGuessKindToResource(external.GetObjectKind().GroupVersionKind())
	ctx := request.WithNamespace(context.Background(), accessor.GetNamespace())
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource})
	rest.FillObjectMetaSystemFields(accessor)
	// The storage of services allocates addresses before it validates.
	if headless, isService := internal.(*core.Service); isService && headless.Spec.ClusterIP != "" {
		headless.Spec.ClusterIPs = []string{headless.Spec.ClusterIP}
	}
	if err := rest.BeforeCreate(strategy, ctx, internal); err != nil {
		problems = append(problems, err.Error())
	}
	for _, warning := range strategy.WarningsOnCreate(ctx, internal) {
		fmt.Println("warning: " + warning)
	}
	return problems
}

func insecurities(object runtime.Object, security policy.Evaluator) (problems []string) {
	var template *corev1.PodTemplateSpec
	switch owner := object.(type) {
	case *appsv1.StatefulSet:
		template = &owner.Spec.Template
	case *batchv1.Job:
		template = &owner.Spec.Template
	default:
		return nil
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, result := range security.EvaluatePod(level, &template.ObjectMeta, &template.Spec) {
		if !result.Allowed {
			problems = append(problems, "pod security: "+result.ForbiddenReason+": "+result.ForbiddenDetail)
		}
	}
	return problems
}

func checkMonitoring(text []byte, kind string) (problems []string) {
	var into any
	switch kind {
	case "PodMonitor":
		into = &monitoring.PodMonitor{}
	case "ServiceMonitor":
		into = &monitoring.ServiceMonitor{}
	case "PrometheusRule":
		into = &monitoring.PrometheusRule{}
	default:
		return []string{"no type is known for this kind"}
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return []string{err.Error()}
	}
	rule, isRule := into.(*monitoring.PrometheusRule)
	if !isRule {
		return nil
	}
	groups, err := yaml.Marshal(rule.Spec)
	if err != nil {
		return []string{err.Error()}
	}
	_, errs := rulefmt.Parse(groups, false, model.LegacyValidation, parser.NewParser(parser.Options{}), nil)
	for _, err := range errs {
		problems = append(problems, strings.TrimSpace(err.Error()))
	}
	return problems
}
