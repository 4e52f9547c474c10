"""What bench/run is made of. stage: files and users; contenders, containers: who is raced; works, live: at what; racers: how;
goals, report, chart: what came out; soak: whether it lasts."""
