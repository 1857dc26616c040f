"use strict";
/* The algebra of priors: the same operations in the same order as pu_shift.priors. */
const priors = {
  /* The test prior that stands for a prior and a penalty (Theorem 3). */
  testPriorFromAlpha(prior, alpha) {
    const falseNegative = prior * (1 - alpha);
    return falseNegative / (falseNegative + alpha * (1 - prior));
  },
  /* All that a prior, a test prior and a penalty of false positives imply. */
  condition(prior, testPrior, alpha) {
    const falsePositive = alpha * prior * (1 - testPrior);
    const alphaUnif = falsePositive / (falsePositive + (1 - alpha) * testPrior * (1 - prior));
    const odds = (prior / (1 - prior)) * (alpha / (1 - alpha));
    const threshold = alphaUnif / prior;
    return {
      prior, testPrior, alpha, alphaUnif, threshold,
      priorUnif: priors.testPriorFromAlpha(testPrior, alpha),
      thresholdUp: 1 / threshold,
      isConvex: odds <= testPrior / (1 - testPrior),
    };
  },
  /* The posterior at one prior, moved to another by Bayes' rule. */
  shiftPosterior(posterior, prior, testPrior) {
    const positive = posterior * (testPrior / prior);
    const negative = (1 - posterior) * ((1 - testPrior) / (1 - prior));
    return positive / (positive + negative);
  },
};
